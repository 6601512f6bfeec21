/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates one block by probe and ends in the way that its argument says.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/probe.h"
#include "base/site.h"
#include "observe/observe.h"

static char **arguments;

__attribute__((noinline)) static void alloc(uint64_t address)
{
    BLYI_PROBE(ALLOC, .card = 0, .address = address, .asked = 2 * MiB, .rounded = 2 * MiB,
               .backed = 2 * MiB, .page_kind = BLYI_PAGE_HUGE, .site = BLYI_SITE_HERE());
}

_Noreturn static void *exit_here(void *arg)
{
    (void)arg;
    exit(4);
}

_Noreturn static void *emit_for_ever(void *arg)
{
    (void)arg;
    for (;;) {
        BLYI_PROBE(ALLOC, .card = 0, .address = 0x10000000, .asked = 4096, .rounded = 4096,
                   .backed = 4096, .site = 0);
        BLYI_PROBE(FREE, .card = 0, .address = 0x10000000, .asked = 4096, .rounded = 4096,
                   .backed = 4096);
    }
}

/* A program that runs into the end of main while its threads go on, one of them ending it. */
_Noreturn static void end_by_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, emit_for_ever, NULL);
    pthread_create(&thread, NULL, exit_here, NULL);
    for (;;)
        pause();
}

/* Children: one forked and ended by exit, one by _exit, one that becomes this program again. */
static int end_with_children(void)
{
    char *again[] = {arguments[0], (char[]){"exit"}, NULL};
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0 && i == 0)
            exit(0);
        if (pid == 0 && i == 1)
            _exit(0);
        if (pid == 0)
            execv(arguments[0], again);
        waitpid(pid, NULL, 0);
    }
    return 5;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    arguments = argv;
    if (strcmp(how, "unused") == 0) { /* its child is no program of its own */
        pid_t pid = fork();
        if (pid == 0)
            exit(0);
        waitpid(pid, NULL, 0);
        return 7;
    }
    if (strcmp(how, "chdir") == 0 && chdir("/") != 0)
        return 1;
    blyi_observe_attach();
    blyi_observe_attach();
    if (strcmp(how, "quiet") == 0)
        return 0;
    alloc(0x1000000);
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(6);
    if (strcmp(how, "thread") == 0)
        end_by_thread();
    if (strcmp(how, "children") == 0)
        return end_with_children();
    if (strcmp(how, "signal") == 0)
        raise(SIGTERM);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "close") == 0)
        for (int fd = 0; fd < 64; fd++)
            close(fd);
    return 0;
}

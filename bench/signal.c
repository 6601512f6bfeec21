/* SPDX-License-Identifier: Apache-2.0
 *
 * signal.c - how long it takes from a record in one process until a stream of another goes on:
 * a notify there and a notify back, recorded and waited for by streams, with the host waiting; a
 * shared event recorded while the other's stream waits for it. The bound is the same between two
 * host threads of the two processes, by a byte in a pipe.
 */
#include "bench/bench.h"
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY 65

/* What both processes map. */
struct board {
    uint32_t ready, rounds;
    char there[KEY], back[KEY];
    aclrtIpcEventHandle event;
};
static struct board *board;
static int to[2], from[2]; /* pipes */

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != ACL_SUCCESS) {                                                               \
            const char *text_ = aclGetRecentErrMsg();                                              \
            bench_cannot("%s: %s", #call, text_ ? text_ : "?");                                    \
        }                                                                                          \
    } while (0)

static void pass(int fd)
{
    if (write(fd, "x", 1) != 1)
        bench_cannot("a pipe broke");
}

static void get(int fd)
{
    char byte;
    if (read(fd, &byte, 1) != 1)
        bench_cannot("a pipe broke");
}

static aclrtStream begin(void)
{
    aclrtStream stream;
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    MUST(aclrtCreateStream(&stream));
    return stream;
}

/* The other process: answers each notify, each byte, and waits for each record. */
static void other(void)
{
    get(to[0]);
    aclrtStream stream = begin();
    aclrtNotify there, back;
    aclrtEvent event;
    MUST(aclrtNotifyImportByKey(&there, board->there, 0));
    MUST(aclrtNotifyImportByKey(&back, board->back, 0));
    MUST(aclrtIpcOpenEventHandle(board->event, &event));
    pass(from[1]);
    for (uint32_t i = 0; i < board->rounds; i++) {
        MUST(aclrtWaitAndResetNotify(there, stream, 0));
        MUST(aclrtRecordNotify(back, stream));
    }
    MUST(aclrtSynchronizeStream(stream));
    for (uint32_t i = 0; i < board->rounds; i++) {
        get(to[0]);
        pass(from[1]);
    }
    for (uint32_t i = 0; i < board->rounds; i++) {
        get(to[0]); /* a record is queued behind something */
        MUST(aclrtStreamWaitEvent(stream, event));
        pass(from[1]);
        MUST(aclrtSynchronizeStream(stream));
        pass(from[1]);
    }
    _exit(0);
}

/* Tasks already queued on both sides: record, wait for the answer. */
static void notifies(const struct bench *bench, aclrtStream stream, aclrtNotify there,
                     aclrtNotify back, struct bench_samples *us)
{
    uint32_t batch = bench->quick ? 10 : 100;
    for (uint32_t done = 0; done < board->rounds; done += batch) {
        uint64_t start = bench_ns();
        for (uint32_t i = 0; i < batch; i++) {
            MUST(aclrtRecordNotify(there, stream));
            MUST(aclrtWaitAndResetNotify(back, stream, 0));
        }
        MUST(aclrtSynchronizeStream(stream));
        bench_add(us, (double)(bench_ns() - start) / 1e3 / 2 / batch);
    }
}

static void pipes(struct bench_samples *us)
{
    for (uint32_t i = 0; i < board->rounds; i++) {
        uint64_t start = bench_ns();
        pass(to[1]);
        get(from[0]);
        bench_add(us, (double)(bench_ns() - start) / 1e3 / 2);
    }
}

/* From the moment at which the record may run until the other host knows, less nothing: the byte
 * that tells us is in the figure. */
static void events(aclrtStream stream, aclrtEvent event, aclrtNotify gate, struct bench_samples *us)
{
    aclrtStream opener;
    MUST(aclrtCreateStream(&opener));
    for (uint32_t i = 0; i < board->rounds; i++) {
        MUST(aclrtWaitAndResetNotify(gate, stream, 0));
        MUST(aclrtRecordEvent(event, stream));
        pass(to[1]);
        get(from[0]);
        bench_sleep_ms(1); /* its stream is blocked by now, all threads sleep */
        uint64_t start = bench_ns();
        MUST(aclrtRecordNotify(gate, opener));
        get(from[0]);
        bench_add(us, (double)(bench_ns() - start) / 1e3);
        MUST(aclrtSynchronizeStream(stream));
    }
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_samples notify_us = {0}, pipe_us = {0}, event_us = {0};
    char folder[] = "/tmp/belay-bench-XXXXXX", command[64];
    bench_begin(&bench, "signal", argc, argv);
    if (mkdtemp(folder) == NULL || pipe(to) != 0 || pipe(from) != 0)
        bench_cannot("no folder in /tmp, or no pipes");
    setenv("BELAY_STATE", folder, 1);
    setenv("BELAY_HBM", "1GiB", 1);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        bench_cannot("no shared memory");
    board->rounds = bench.quick ? 20 : 2000;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        other();
    aclrtStream stream = begin();
    aclrtNotify there, back, gate;
    aclrtEvent event;
    MUST(aclrtCreateNotify(&there, 0));
    MUST(aclrtCreateNotify(&back, 0));
    MUST(aclrtCreateNotify(&gate, 0));
    MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    MUST(aclrtNotifyGetExportKey(there, board->there, KEY, 2));
    MUST(aclrtNotifyGetExportKey(back, board->back, KEY, 2));
    MUST(aclrtIpcGetEventHandle(event, &board->event));
    pass(to[1]);
    get(from[0]);
    notifies(&bench, stream, there, back, &notify_us);
    pipes(&pipe_us);
    events(stream, event, gate, &event_us);
    waitpid(pid, NULL, 0);
    bench_section(&bench, "from one process to another; bound: a byte through a pipe, one way");
    bench_row(&bench, &(struct bench_row){"notify, stream to stream, one way", "us", &notify_us,
                                          &pipe_us, BENCH_NO_TARGET, 0});
    bench_row(&bench, &(struct bench_row){"event, record to the other host, and back by pipe", "us",
                                          &event_us, &pipe_us, BENCH_NO_TARGET, 0});
    bench_end(&bench);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * process_world.c - partners and what they share.
 */
#include "process_case.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct board *board;

void board_make(void)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    SURE(board != MAP_FAILED);
}

struct partner partner_start(void (*body)(struct partner *me))
{
    int to[2], from[2];
    SURE(pipe(to) == 0 && pipe(from) == 0);
    fflush(NULL);
    struct partner partner = {.pid = fork(), .to = to[1], .from = from[0]};
    SURE(partner.pid >= 0);
    if (partner.pid == 0) {
        struct partner me = {.to = from[1], .from = to[0]};
        close(to[1]);
        close(from[0]);
        alarm(600);
        body(&me);
        exit(0);
    }
    close(to[0]);
    close(from[1]);
    return partner;
}

void told(struct partner *me)
{
    char byte;
    if (read(me->from, &byte, 1) != 1)
        _exit(98);
}

void done(struct partner *me)
{
    SURE(write(me->to, "d", 1) == 1);
}

void partner_step(struct partner *partner)
{
    done(partner);
    told(partner);
}

static int status_of(const struct partner *partner)
{
    int status;
    SURE(waitpid(partner->pid, &status, 0) == partner->pid);
    return status;
}

void partner_end(struct partner *partner)
{
    done(partner);
    int status = status_of(partner);
    SURE(WIFEXITED(status));
    SURE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42); /* 42: something was found */
}

void partner_kill(struct partner *partner)
{
    SURE(kill(partner->pid, SIGKILL) == 0);
    SURE(WIFSIGNALED(status_of(partner)));
}

void begin_on(int card)
{
    OK(aclInit(NULL));
    OK(aclrtSetDevice(card));
}

void end_on(int card)
{
    OK(aclrtResetDevice(card));
    OK(aclFinalize());
}

size_t free_of_card(void)
{
    size_t free, total;
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    return free;
}

aclrtStream new_stream(void)
{
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    return stream;
}

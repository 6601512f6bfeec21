/* SPDX-License-Identifier: Apache-2.0
 *
 * many_test.h - several processes on the cards of one state folder. A peer is forked before its
 * parent has touched the runtime, and moves one step each time it is told to, so that no order is
 * left to chance.
 */
#ifndef MANY_TEST_H
#define MANY_TEST_H

#include "../conformance/acl_test.h"
#include <ftw.h>

struct peer {
    pid_t pid;
    int to, from; /* pipes, as the parent sees them */
    int in, out;  /* as the peer does */
};

static char state_folder[64];

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static inline void state_remove(void)
{
    (void)nftw(state_folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A folder for this test alone. */
static inline void state_make(void)
{
    snprintf(state_folder, sizeof state_folder, "/tmp/belay-test-XXXXXX");
    CHECK(mkdtemp(state_folder) != NULL);
    setenv("BELAY_STATE", state_folder, 1);
}

/* In the peer: waits to be told; the peer ends when its parent is gone. */
static inline void peer_wait(struct peer *me)
{
    char byte;
    if (read(me->in, &byte, 1) != 1)
        _exit(0);
}

/* In the peer: what was told is done. */
static inline void peer_done(struct peer *me)
{
    CHECK_EQ(write(me->out, "d", 1), 1);
}

static inline void peer_say(struct peer *me, const void *data, size_t size)
{
    CHECK_EQ(write(me->out, data, size), size);
}

static inline void peer_hear(struct peer *me, void *data, size_t size)
{
    CHECK_EQ(read(me->in, data, size), size);
}

static inline struct peer peer_start(void (*body)(struct peer *me))
{
    int to[2], from[2];
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    struct peer peer = {.to = to[1], .from = from[0], .in = to[0], .out = from[1]};
    fflush(NULL);
    peer.pid = fork();
    CHECK(peer.pid >= 0);
    if (peer.pid == 0) {
        close(to[1]);
        close(from[0]);
        alarm(TEST_SECONDS);
        body(&peer);
        fflush(NULL);
        exit(0);
    }
    close(to[0]);
    close(from[1]);
    return peer;
}

static inline void peer_tell(struct peer *peer)
{
    CHECK_EQ(write(peer->to, "g", 1), 1);
}

/* False: it died before it was done. */
static inline bool peer_answers(struct peer *peer)
{
    char byte;
    return read(peer->from, &byte, 1) == 1;
}

/* One step of the peer, from begin to end. */
static inline void peer_step(struct peer *peer)
{
    peer_tell(peer);
    CHECK(peer_answers(peer));
}

/* Lets it run to its end, and expects that it was happy. */
static inline void peer_end(struct peer *peer)
{
    int status;
    close(peer->to);
    CHECK_EQ(waitpid(peer->pid, &status, 0), peer->pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(peer->from);
}

static inline void peer_kill(struct peer *peer)
{
    int status;
    CHECK(kill(peer->pid, SIGKILL) == 0);
    CHECK_EQ(waitpid(peer->pid, &status, 0), peer->pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(peer->to);
    close(peer->from);
}

#define OVERHEAD (16 * MIB) /* of the runtime of a process on a card, 910B */

static inline void *device_alloc(size_t size)
{
    void *address = NULL;
    OK(aclrtMallocAlign32(&address, size, HUGE_FIRST));
    return address;
}

static inline void bind_card(int card)
{
    OK(aclInit(NULL));
    OK(aclrtSetDevice(card));
}

/* A test in a state folder of its own. */
#define MANY_TEST(name)                                                                            \
    static void name##_steps(void);                                                                \
    TEST(name)                                                                                     \
    {                                                                                              \
        state_make();                                                                              \
        name##_steps();                                                                            \
        state_remove();                                                                            \
    }                                                                                              \
    static void name##_steps(void)

#endif

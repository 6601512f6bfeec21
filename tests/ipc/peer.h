/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.h - processes that do what a test tells them, one call at a time, so that a test reads in
 * the order in which things happen. A peer answers when its call has returned.
 */
#ifndef PEER_H
#define PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define KIB          ((uint64_t)1 << 10)
#define MIB          ((uint64_t)1 << 20)
#define GIB          ((uint64_t)1 << 30)
#define HUGE_FIRST   0
#define NORMAL_ONLY  2
#define PEER_SECONDS 600 /* of one call: then it hangs */

enum op {
    OP_INIT,         /* a: device */
    OP_MALLOC,       /* a: size, b: policy -> a: address */
    OP_FREE,         /* a: address */
    OP_EXPORT,       /* a: address, b: size, c: flags -> key */
    OP_IMPORT,       /* key, c: flags -> a: address */
    OP_CLOSE,        /* key */
    OP_RT_NAME,      /* a: address, b: size -> key; rtIpcSetMemoryName and its kin */
    OP_RT_OPEN,      /* key -> a: address */
    OP_RT_CLOSE,     /* a: address */
    OP_RT_DESTROY,   /* key */
    OP_RT_ADMIT,     /* key, a: pid, b: sdid */
    OP_RT_P2P,       /* a: device, b: card, c: enable */
    OP_RT_COPY,      /* a: to, b: from, c: size, d: kind; in order, waited for */
    OP_ALLOW,        /* key, a: pid */
    OP_FILL,         /* a: address, b: size, c: byte; by a task of the card */
    OP_EXPECT,       /* a: address, b: size, c: byte -> a: first place that differs, or b */
    OP_COPY,         /* a: to, b: from, c: size, d: kind; at once */
    OP_ORDER,        /* the same in the order of the default stream, which is waited for */
    OP_QUEUE,        /* a: to, b: from, c: size, d: times; card to card, not waited for */
    OP_WAIT,         /* for all of that */
    OP_FREE_MEM,     /* -> a: free, b: total */
    OP_PID,          /* -> a: what the process is admitted by */
    OP_PHYSICAL,     /* a: size -> a: handle */
    OP_RELEASE,      /* a: handle */
    OP_SHARE,        /* a: handle, c: flags -> a: shareable handle */
    OP_ADMIT,        /* a: shareable handle, b: pid */
    OP_ADOPT,        /* a: shareable handle, b: device -> a: handle */
    OP_FABRIC,       /* a: handle, c: flags -> fabric */
    OP_ADOPT_FABRIC, /* fabric -> a: handle */
    OP_RESERVE,      /* a: size -> a: address */
    OP_MAP,          /* a: address, b: size, c: handle */
    OP_UNMAP,        /* a: address */
    OP_POOL,         /* a: 1 of export-ready blocks -> a: pool that keeps all it has */
    OP_TAKE,         /* a: size, b: pool -> a: address; on a stream of its own */
    OP_GIVE,         /* a: address; the same, which is waited for */
    OP_HELD,         /* a: pool -> a: bytes held, b: bytes in use */
    OP_TRIM,         /* a: pool, b: bytes to keep */
    OP_RETAIN,       /* a: address -> a: handle */
    OP_RESET,        /* of device a */
    OP_FINALISE,
    OP_PEER,     /* a: device: enable access to its memory */
    OP_DEVICE,   /* a: device: current */
    OP_LIST,     /* -> a: live shares; text: who holds them */
    OP_AUDIT,    /* -> a: 1 sound */
    OP_REAP,     /* clears up after the dead */
    OP_IMPORTED, /* -> a: bytes of others that this process has open, b: rows of imports */
    OP_CHARGED,  /* a, b: pids -> a: what a cap of the two together counts of imports */
    OP_INFO,     /* a: address -> text: bly_pointer_text */
    OP_WHERE,    /* a: address -> a: device id, b: kind of place; as aclrtPointerGetAttributes */
    OP_RANGE,    /* a: address -> a: base, b: size */
    OP_DEFRAG,   /* -> a: bytes moved */
    OP_FAIL,     /* a: nth host allocation, b: nth system call from now fails; 0, 0: none.
                    -> a: whether one has since the last time */
    OP_DIE,      /* a: at the nth step of changes to the ledger */
    OP_EXIT      /* exit(), with all that is still held */
};

struct call {
    enum op op;
    uint64_t a, b, c, d;
    char key[65];
    unsigned char fabric[128];
};

struct answer {
    int error;
    uint64_t a, b;
    char key[65];
    unsigned char fabric[128];
    char text[1024]; /* of an error */
};

struct peer {
    pid_t pid;
    int in, out;
    struct answer answer; /* the last one */
};

/* Each test has a state folder, and cards of 1 GiB, of its own. Options are set before peers are
 * started. */
void peers_begin(void);
void peers_end(void);
void peer_start(struct peer *peer);
/* The call, and what came back of it. Dies with the caller's place when the peer is gone. */
struct answer *peer_call(struct peer *peer, struct call call, const char *file, int line);
/* After OP_DIE: 0 when it died in it, 1 when it answered. */
int peer_call_maybe_dying(struct peer *peer, struct call call);
void peer_kill(struct peer *peer);  /* SIGKILL, and waits */
void peer_leave(struct peer *peer); /* exit(), and waits: it must end well */

/* CALL(&a, MALLOC, .a = 64 * MIB): returns the answer, whatever it is. */
#define CALL(peer, op_, ...)                                                                       \
    peer_call(peer, (struct call){.op = OP_##op_, ##__VA_ARGS__}, __FILE__, __LINE__)
/* The same, and the call must return `want`. */
#define WANT(want, peer, op_, ...)                                                                 \
    peer_want(CALL(peer, op_, ##__VA_ARGS__), want, __FILE__, __LINE__)
#define DO(peer, op_, ...) WANT(0, peer, op_, ##__VA_ARGS__)
struct answer *peer_want(struct answer *answer, int want, const char *file, int line);
/* The last answer's text has this in it. */
#define SAYS(peer, part) peer_says(peer, part, __FILE__, __LINE__)
void peer_says(const struct peer *peer, const char *part, const char *file, int line);

static inline struct call with_key(struct call call, const char *key)
{
    snprintf(call.key, sizeof call.key, "%s", key);
    return call;
}
#define CALL_KEY(peer, op_, key_, ...)                                                             \
    peer_call(peer, with_key((struct call){.op = OP_##op_, ##__VA_ARGS__}, key_), __FILE__,        \
              __LINE__)
#define WANT_KEY(want, peer, op_, key_, ...)                                                       \
    peer_want(CALL_KEY(peer, op_, key_, ##__VA_ARGS__), want, __FILE__, __LINE__)
#define DO_KEY(peer, op_, key_, ...) WANT_KEY(0, peer, op_, key_, ##__VA_ARGS__)

uint64_t peer_free(struct peer *peer); /* free bytes of the card */

#endif

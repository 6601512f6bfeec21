/* SPDX-License-Identifier: Apache-2.0
 *
 * check_case.h - small programs for the checker: each plants one fault, or is right though it looks
 * wrong. The driver (test_check.c) runs each in a process of its own.
 */
#ifndef CHECK_CASE_H
#define CHECK_CASE_H

#include <acl/acl.h>
#include <acl/acl_tdt.h>
#include <acl/acl_tdt_queue.h>
#include <belay/kernel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB  ((size_t)1 << 10)
#define MIB  ((size_t)1 << 20)
#define SIZE MIB

/* What the program does wrong, seen by the driver: kinds with commas between, "" for nothing. */
struct check_case {
    const char *name;
    void (*run)(void);
    const char *kinds;
    const char *part;        /* parts of what is told, with | between; NULL: any */
    const char *environment; /* variables, with blanks between; NULL: none */
};

extern const struct check_case faults_order[], faults_memory[], faults_free[], faults_graph[],
    correct_order[], correct_memory[], correct_graph[], faults_pool[], correct_pool[],
    faults_kinds[], correct_kinds[];

#define OK(call)                                                                                   \
    do {                                                                                           \
        aclError code_ = (call);                                                                   \
        if (code_ != 0) {                                                                          \
            fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, code_);          \
            exit(99);                                                                              \
        }                                                                                          \
    } while (0)

#define D2H ACL_MEMCPY_DEVICE_TO_HOST
#define H2D ACL_MEMCPY_HOST_TO_DEVICE
#define D2D ACL_MEMCPY_DEVICE_TO_DEVICE

/* Three streams, two blocks of card memory that were written, and a pinned one; the card is given
 * back at the end. */
struct world {
    aclrtStream a, b, c;
    aclrtEvent event;
    char *x, *y, *pinned;
    char *mark, *seen; /* of seen_done() */
    int n_seen;
};
extern struct world w;
void world_begin(void);
void world_end(void);
char *card_block(size_t size); /* not written */

/* Keeps a stream busy until let go. */
struct gate {
    atomic_bool open, reached;
};
/* The same for some milliseconds, without the host; returns what it works on. */
char *busy(aclrtStream stream);
void hold(struct gate *gate, aclrtStream stream);
void let_go(struct gate *gate);
/* The same by a kernel that looks at the gate: an order that only memory makes. */
void stall(struct gate *gate, aclrtStream stream);

void set(char *at, size_t size, aclrtStream stream);
void get(char *to, const char *at, size_t size, aclrtStream stream); /* to pinned memory */
void put(char *at, const char *from, size_t size, aclrtStream stream);
/* A kernel that touches nothing and says that it does. */
void touch(const void *at, size_t size, uint32_t access, aclrtStream stream);
/* The same by AscendCL's means: nothing is said. */
void touch_unknown(aclrtStream stream);
void record(aclrtEvent event, aclrtStream stream);
void wait_for(aclrtEvent event, aclrtStream stream);
void wait_done(aclrtStream stream);
/* The stream's work has ended, and no call of the host has made sure of it: it saw the bytes of a
 * last copy, which is an order that only memory makes. */
void seen_done(aclrtStream stream);
aclrtEvent legacy_event(void);

#endif

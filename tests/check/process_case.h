/* SPDX-License-Identifier: Apache-2.0
 *
 * process_case.h - cases that begin and end AscendCL themselves, some of them with a partner: a
 * process forked before either has touched AscendCL, which moves one step when it is told to.
 */
#ifndef PROCESS_CASE_H
#define PROCESS_CASE_H

#include "check_case.h"

#define KEY_SIZE 65
#define GIB      ((size_t)1 << 30)

/* Bytes that a bound process takes on a card. */
#define OVERHEAD (16 * MIB)

struct partner {
    pid_t pid;
    int to, from;
};

/* Seen by both processes. */
struct board {
    char key[KEY_SIZE], first_notify[KEY_SIZE], second_notify[KEY_SIZE];
    aclrtIpcEventHandle event;
    uint64_t value;
    atomic_bool open;
};
extern struct board *board;

void board_make(void);
struct partner partner_start(void (*body)(struct partner *me));
void partner_step(struct partner *partner); /* tells it to go on, and waits until it has */
void partner_end(struct partner *partner);  /* the same, and it ends well */
void partner_kill(struct partner *partner);
/* In the partner. */
void told(struct partner *me);
void done(struct partner *me);

#define REFUSED(want, call)                                                                        \
    do {                                                                                           \
        aclError code_ = (call);                                                                   \
        if (code_ != (want)) {                                                                     \
            fprintf(stderr, "%s:%d: %s returned %d, not %d\n", __FILE__, __LINE__, #call, code_,   \
                    (want));                                                                       \
            exit(99);                                                                              \
        }                                                                                          \
    } while (0)
#define SURE(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(99);                                                                              \
        }                                                                                          \
    } while (0)

void begin_on(int card); /* aclInit, aclrtSetDevice */
void end_on(int card);
size_t free_of_card(void);
aclrtStream new_stream(void);

extern const struct check_case scenarios_memory[], scenarios_things[], faults_process[],
    correct_process[];

#endif

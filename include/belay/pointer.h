/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/pointer.h - what an address is: live, freed, reserved, or nobody's.
 *
 * Threads  [any] for all functions here. None needs a context, none changes anything.
 */
#ifndef BLY_POINTER_H
#define BLY_POINTER_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text). Values never change once released. */
#define BLY_POINTER_KINDS(X)                                                                       \
    X(NULL, 0, "null")                                                                             \
    X(HOST, 1, "plain host memory")                                                                \
    X(PINNED, 2, "pinned host memory")                                                             \
    X(REGISTERED, 3, "registered host memory")                                                     \
    X(CARD, 4, "card memory")                                                                      \
    X(MAPPED, 5, "mapped physical memory")                                                         \
    X(RESERVED, 6, "a reserved address with nothing mapped")                                       \
    X(UNMAPPED, 7, "a reserved address from which memory was unmapped")                            \
    X(FREED, 8, "freed memory")                                                                    \
    X(OUTSIDE, 9, "an address of a card inside no block")                                          \
    X(IMPORTED, 10, "memory of another process, imported")

typedef enum bly_pointer_kind {
#define BLY_POINTER_ENUM(name, value, text) BLY_POINTER_##name = value,
    BLY_POINTER_KINDS(BLY_POINTER_ENUM)
#undef BLY_POINTER_ENUM
} bly_pointer_kind;

/* struct_size comes from the caller: fields behind it are not written. Fields are only appended. */
typedef struct bly_pointer {
    uint32_t struct_size;
    int32_t kind;       /* bly_pointer_kind */
    int32_t card;       /* CARD, IMPORTED, MAPPED, FREED, OUTSIDE: whose; -1: the host's, or none */
    uint32_t page_size; /* bytes; 0 where nothing is live */
    void *base;         /* of the block, mapping, range or registration; NULL: none */
    uint64_t size;      /* bytes, as the program asked (FREED, UNMAPPED: whole pages) */
    uint64_t offset;    /* of the address from base */
    const void *made_by;  /* return address of the call that allocated, mapped or registered */
    const void *ended_by; /* FREED, UNMAPPED: of the call that freed or unmapped */
    uint64_t age_ns;      /* since it was made; FREED, UNMAPPED: since it ended */
} bly_pointer;

/* Fills *info. FREED and UNMAPPED are told as far as the last 1024 of a card, of pinned memory and
 * of reserved addresses go back.
 * E_INVALID    info is NULL or its struct_size is below 16
 * E_FORKED     the process was forked after the runtime was up */
BLY_API bly_status bly_pointer_info(const void *address, bly_pointer *info);

#define BLY_POINTER_TEXT 512
/* The same as one line: "0x7f...: freed memory of card 1, 12 us ago at f+0x1c (prog), ...". Cut to
 * size - 1 bytes. Returns text. */
BLY_API const char *bly_pointer_text(const void *address, char *text, size_t size);

BLY_API const char *bly_pointer_kind_text(bly_pointer_kind kind);

#ifdef __cplusplus
}
#endif
#endif

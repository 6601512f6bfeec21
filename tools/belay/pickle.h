/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle.h - reads the values of a Python pickle, and nothing else: no names of code are looked
 * up, so nothing in the file can run. Protocols 2 to 5.
 */
#ifndef BELAY_PICKLE_H
#define BELAY_PICKLE_H

#include <belay/base.h>
#include <stdbool.h>

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT, /* those beyond 64 bits are PICKLE_OTHER */
    PICKLE_FLOAT,
    PICKLE_TEXT, /* UTF-8, or bytes */
    PICKLE_LIST, /* list, tuple, set */
    PICKLE_DICT, /* keys and values take turns */
    PICKLE_OTHER,
};

struct pickle_box;

struct pickle_value {
    enum pickle_kind kind;
    uint32_t length; /* of a text */
    union {
        int64_t integer;
        double number;
        const char *text; /* in the file: not terminated */
        struct pickle_box *box;
    } is;
};

struct pickle_box {
    size_t n, room;
    struct pickle_value *items;
};

struct pickle;

/* `bytes` must stay. E_PARSE: the sentence names the byte and what is there; E_HOST_MEMORY. */
bly_status pickle_read(const void *bytes, size_t size, const char *name, struct pickle **out);
void pickle_free(struct pickle *pickle); /* NULL is allowed */
struct pickle_value pickle_top(const struct pickle *pickle);

/* The value of a text key in a dictionary; false: no dictionary, or no such key. */
bool pickle_get(struct pickle_value dict, const char *key, struct pickle_value *out);
bool pickle_is(struct pickle_value value, const char *text);

#endif

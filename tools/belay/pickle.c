/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle.c - the stack machine of pickles, without the instructions that import, call or build
 * objects. Containers may hold themselves; nothing here walks them.
 */
#include "pickle_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/fail.h"

#define MEMORY_PER_BYTE 64 /* of the file: more is no honest one */
#define MEMORY_MIN      ((size_t)64 << 20)

/* Names of instructions, for the few that are known. */
enum op {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_DUP = '2',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINUNICODE = 'X',
    OP_APPEND = 'a',
    OP_DICT = 'd',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_LIST = 'l',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_LIST = ']',
    OP_EMPTY_TUPLE = ')',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_BINBYTES8 = 0x8e,
    OP_EMPTY_SET = 0x8f,
    OP_ADDITEMS = 0x90,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
};

/* What imports, calls or builds: refused by name. */
static const struct {
    unsigned char op;
    const char *name;
} refused[] = {
    {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},      {'b', "BUILD"},
    {'i', "INST"},   {'o', "OBJ"},           {0x81, "NEWOBJ"},     {0x92, "NEWOBJ_EX"},
    {'P', "PERSID"}, {'Q', "BINPERSID"},     {0x82, "EXT1"},       {0x83, "EXT2"},
    {0x84, "EXT4"},  {0x97, "NEXT_BUFFER"},  {0x96, "BYTEARRAY8"}, {0x98, "READONLY_BUFFER"}};

/* ── Instructions ─────────────────────────────────────────────────────────────────────────── */

static uint64_t operand(struct pickle *p, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(p->end - p->at) < size) {
        p->at = p->end;
        pickle_fail_at(p, "the file ends within an instruction");
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)p->at[i] << 8 * i;
    p->at += size;
    return value;
}

static const char *operand_bytes(struct pickle *p, uint64_t size)
{
    if ((uint64_t)(p->end - p->at) < size || size > UINT32_MAX) {
        pickle_fail_at(p, "the file ends within a text");
        return NULL;
    }
    const char *bytes = (const char *)p->at;
    p->at += size;
    return bytes;
}

static void push_text(struct pickle *p, size_t length_size)
{
    uint64_t length = operand(p, length_size);
    const char *text = operand_bytes(p, length);
    if (text != NULL)
        pickle_push(p, (struct pickle_value){
                           .kind = PICKLE_TEXT, .length = (uint32_t)length, .is.text = text});
}

static void push_int(struct pickle *p, int64_t value)
{
    pickle_push(p, (struct pickle_value){.kind = PICKLE_INT, .is.integer = value});
}

/* Little-endian, two's complement, of any length. */
static void push_long(struct pickle *p, size_t length_size)
{
    uint64_t length = operand(p, length_size), value = 0;
    const char *bytes = operand_bytes(p, length);
    if (bytes == NULL)
        return;
    if (length > 9 || (length == 9 && bytes[8] != 0)) {
        pickle_push(p, (struct pickle_value){.kind = PICKLE_OTHER});
        return;
    }
    for (uint64_t i = 0; i < length && i < 8; i++)
        value |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    if (length > 0 && length < 8 && (bytes[length - 1] & 0x80))
        value |= UINT64_MAX << 8 * length;
    push_int(p, (int64_t)value);
}

static void push_float(struct pickle *p)
{
    uint64_t bits = 0;
    double value;
    const char *bytes = operand_bytes(p, 8);
    for (int i = 0; bytes != NULL && i < 8; i++)
        bits = bits << 8 | (unsigned char)bytes[i];
    memcpy(&value, &bits, sizeof(value));
    pickle_push(p, (struct pickle_value){.kind = PICKLE_FLOAT, .is.number = value});
}

static void memo_put(struct pickle *p, uint64_t index)
{
    if (!pickle_has(p, 1))
        return;
    if (index >= (uint64_t)(p->end - p->start)) {
        pickle_fail_at(p, "a memo number beyond what the file can have");
        return;
    }
    if (!pickle_grow(p, &p->memo, (size_t)index + 1))
        return;
    p->memo.at[index] = p->stack.at[p->stack.n - 1];
    if (index >= p->memo.n)
        p->memo.n = (size_t)index + 1;
}

static void memo_get(struct pickle *p, uint64_t index)
{
    if (index >= p->memo.n)
        pickle_fail_at(p, "a memo number that was not given");
    else
        pickle_push(p, p->memo.at[index]);
}

static void refuse(struct pickle *p, unsigned char op)
{
    for (size_t i = 0; i < BLYI_COUNT(refused); i++)
        if (refused[i].op == op) {
            p->at--;
            if (p->status == BLY_OK)
                p->status = blyi_fail(BLY_E_PARSE,
                                      "%s: byte %zu of the pickle is %s, which runs code or needs "
                                      "it; a memory snapshot has no such",
                                      p->name, (size_t)(p->at - p->start), refused[i].name);
            return;
        }
    p->at--;
    pickle_fail_at(p, "an instruction that a memory snapshot does not use");
}

static void pop(struct pickle *p)
{
    if (p->n_marks > 0 && p->stack.n == pickle_floor_of(p))
        p->n_marks--;
    else if (pickle_has(p, 1))
        p->stack.n--;
}

static void tuple_of(struct pickle *p, size_t n)
{
    if (pickle_has(p, n))
        pickle_push_box(p, PICKLE_LIST, p->stack.n - n);
}

static void stop(struct pickle *p)
{
    if (!pickle_has(p, 1))
        return;
    p->top = p->stack.at[p->stack.n - 1];
    p->done = true;
}

static void step_values(struct pickle *p, unsigned char op)
{
    switch (op) {
    case OP_NONE:
        pickle_push(p, (struct pickle_value){.kind = PICKLE_NONE});
        break;
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        pickle_push(p, (struct pickle_value){.kind = PICKLE_BOOL, .is.integer = op == OP_NEWTRUE});
        break;
    case OP_BININT:
        push_int(p, (int32_t)operand(p, 4));
        break;
    case OP_BININT1:
        push_int(p, (int64_t)operand(p, 1));
        break;
    case OP_BININT2:
        push_int(p, (int64_t)operand(p, 2));
        break;
    case OP_LONG1:
        push_long(p, 1);
        break;
    case OP_LONG4:
        push_long(p, 4);
        break;
    case OP_BINFLOAT:
        push_float(p);
        break;
    case OP_SHORT_BINUNICODE:
    case OP_SHORT_BINBYTES:
        push_text(p, 1);
        break;
    case OP_BINUNICODE:
    case OP_BINBYTES:
        push_text(p, 4);
        break;
    case OP_BINUNICODE8:
    case OP_BINBYTES8:
        push_text(p, 8);
        break;
    case OP_BINGET:
        memo_get(p, operand(p, 1));
        break;
    case OP_LONG_BINGET:
        memo_get(p, operand(p, 4));
        break;
    default:
        refuse(p, op);
    }
}

static void step(struct pickle *p)
{
    unsigned char op = *p->at++;
    switch (op) {
    case OP_PROTO:
        (void)operand(p, 1);
        break;
    case OP_FRAME:
        (void)operand(p, 8);
        break;
    case OP_MARK:
        pickle_push_mark(p);
        break;
    case OP_STOP:
        stop(p);
        break;
    case OP_POP:
        pop(p);
        break;
    case OP_POP_MARK:
        (void)pickle_pop_mark(p, &p->stack.n);
        break;
    case OP_DUP:
        if (pickle_has(p, 1))
            pickle_push(p, p->stack.at[p->stack.n - 1]);
        break;
    case OP_EMPTY_DICT:
        pickle_push_box(p, PICKLE_DICT, p->stack.n);
        break;
    case OP_EMPTY_LIST:
    case OP_EMPTY_TUPLE:
    case OP_EMPTY_SET:
        pickle_push_box(p, PICKLE_LIST, p->stack.n);
        break;
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        tuple_of(p, (size_t)op - OP_TUPLE1 + 1);
        break;
    case OP_TUPLE:
    case OP_LIST:
        pickle_push_marked(p, PICKLE_LIST);
        break;
    case OP_DICT:
        pickle_push_marked(p, PICKLE_DICT);
        break;
    case OP_APPEND:
        if (pickle_has(p, 2))
            pickle_add_items(p, PICKLE_LIST, p->stack.n - 1);
        break;
    case OP_APPENDS:
    case OP_ADDITEMS:
        pickle_add_marked(p, PICKLE_LIST);
        break;
    case OP_SETITEM:
        if (pickle_has(p, 3))
            pickle_add_items(p, PICKLE_DICT, p->stack.n - 2);
        break;
    case OP_SETITEMS:
        pickle_add_marked(p, PICKLE_DICT);
        break;
    case OP_BINPUT:
        memo_put(p, operand(p, 1));
        break;
    case OP_LONG_BINPUT:
        memo_put(p, operand(p, 4));
        break;
    case OP_MEMOIZE:
        memo_put(p, p->memo.n);
        break;
    default:
        step_values(p, op);
    }
}

bly_status pickle_read(const void *bytes, size_t size, const char *name, struct pickle **out)
{
    struct pickle *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory", name);
    p->start = p->at = bytes;
    p->end = p->start + size;
    p->name = name;
    p->memory_max = size < SIZE_MAX / MEMORY_PER_BYTE - MEMORY_MIN
                        ? size * MEMORY_PER_BYTE + MEMORY_MIN
                        : SIZE_MAX;
    while (p->status == BLY_OK && !p->done && p->at < p->end)
        step(p);
    if (p->status == BLY_OK && !p->done)
        pickle_fail_at(p, "the file ends before its value");
    bly_status status = p->status;
    if (status == BLY_OK)
        *out = p;
    else
        pickle_free(p);
    return status;
}

void pickle_free(struct pickle *p)
{
    if (p == NULL)
        return;
    while (p->pieces != NULL) {
        struct piece *piece = p->pieces;
        p->pieces = piece->next;
        free(piece);
    }
    free(p->stack.at);
    free(p->memo.at);
    free(p->marks);
    free(p);
}

struct pickle_value pickle_top(const struct pickle *p)
{
    return p->top;
}

bool pickle_is(struct pickle_value value, const char *text)
{
    return value.kind == PICKLE_TEXT && value.length == strlen(text) &&
           memcmp(value.is.text, text, value.length) == 0;
}

bool pickle_get(struct pickle_value dict, const char *key, struct pickle_value *out)
{
    if (dict.kind != PICKLE_DICT)
        return false;
    for (size_t i = 0; i + 1 < dict.is.box->n; i += 2)
        if (pickle_is(dict.is.box->items[i], key)) {
            *out = dict.is.box->items[i + 1];
            return true;
        }
    return false;
}

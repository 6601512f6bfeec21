/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle_out.c - texts are kept in the memo, since the same few stand in every entry.
 */
#include "pickle_out.h"

#include <stdlib.h>
#include <string.h>

struct kept {
    struct kept *next; /* of the same hash */
    uint32_t number;
    char text[];
};

static void put_number(FILE *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(value >> 8 * i & 0xff), out);
}

void pickle_out_begin(struct pickle_out *p, FILE *out)
{
    *p = (struct pickle_out){.out = out};
    blyi_map_init(&p->texts);
    fputs("\x80\x02", out);
}

void pickle_out_end(struct pickle_out *p)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    fputc('.', p->out);
    while (blyi_map_next(&p->texts, &cursor, &key, &value))
        for (struct kept *kept = value, *next; kept != NULL; kept = next) {
            next = kept->next;
            free(kept);
        }
    blyi_map_fini(&p->texts);
}

void pickle_out_dict(struct pickle_out *p)
{
    fputs("}(", p->out);
}

void pickle_out_dict_end(struct pickle_out *p)
{
    fputc('u', p->out);
}

void pickle_out_list(struct pickle_out *p)
{
    fputs("](", p->out);
}

void pickle_out_list_end(struct pickle_out *p)
{
    fputc('e', p->out);
}

void pickle_out_int(struct pickle_out *p, uint64_t value)
{
    if (value < 0x100) {
        fputc('K', p->out);
        put_number(p->out, value, 1);
    } else if (value < 0x10000) {
        fputc('M', p->out);
        put_number(p->out, value, 2);
    } else if (value <= INT32_MAX) {
        fputc('J', p->out);
        put_number(p->out, value, 4);
    } else { /* a zero in front where the top bit would make it negative */
        int bytes = 8 - __builtin_clzll(value) / 8;
        bool extra = value >> (8 * bytes - 1) & 1;
        fputc(0x8a, p->out);
        fputc(bytes + extra, p->out);
        put_number(p->out, value, bytes);
        if (extra)
            fputc(0, p->out);
    }
}

void pickle_out_bool(struct pickle_out *p, bool value)
{
    fputc(value ? 0x88 : 0x89, p->out);
}

void pickle_out_pair(struct pickle_out *p, uint64_t a, uint64_t b)
{
    pickle_out_int(p, a);
    pickle_out_int(p, b);
    fputc(0x86, p->out);
}

uint32_t pickle_out_remember(struct pickle_out *p)
{
    fputc('r', p->out);
    put_number(p->out, p->n_memo, 4);
    return p->n_memo++;
}

void pickle_out_again(struct pickle_out *p, uint32_t number)
{
    if (number < 0x100) {
        fputc('h', p->out);
        put_number(p->out, number, 1);
    } else {
        fputc('j', p->out);
        put_number(p->out, number, 4);
    }
}

/* Bytes that are no UTF-8 would stop a reader: question marks stand for them. */
static bool is_ascii(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

static size_t utf8_length(const unsigned char *at)
{
    size_t n = at[0] < 0x80 ? 1 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] >= 0x80 && (at[0] < 0xc2 || at[0] >= 0xf5))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if (n == 3 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0)))
        return 0;
    if (n == 4 && ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90)))
        return 0;
    return n;
}

static void clean(char *text)
{
    if (is_ascii(text))
        return;
    for (unsigned char *at = (unsigned char *)text; *at != '\0';) {
        size_t n = utf8_length(at);
        if (n == 0)
            *at = '?';
        at += n == 0 ? 1 : n;
    }
}

void pickle_out_text(struct pickle_out *p, const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    struct kept *first = blyi_map_get(&p->texts, hash);
    for (const struct kept *kept = first; kept != NULL; kept = kept->next)
        if (strcmp(kept->text, text) == 0) {
            pickle_out_again(p, kept->number);
            return;
        }
    size_t length = strlen(text);
    char *copy = malloc(length + 1);
    struct kept *kept = malloc(sizeof(*kept) + length + 1);
    if (copy == NULL || kept == NULL) {
        free(copy);
        free(kept);
        p->no_memory = true;
        return;
    }
    memcpy(copy, text, length + 1);
    clean(copy);
    fputc('X', p->out);
    put_number(p->out, length, 4);
    fwrite(copy, 1, length, p->out);
    free(copy);
    memcpy(kept->text, text, length + 1);
    kept->next = first;
    kept->number = pickle_out_remember(p);
    if (blyi_map_put(&p->texts, hash, kept) != BLY_OK) {
        free(kept);
        p->no_memory = true;
    }
}

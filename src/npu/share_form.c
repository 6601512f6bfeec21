/* SPDX-License-Identifier: Apache-2.0
 *
 * share_form.c - keys as the program has them in its hands, drawn at random, written and read.
 *
 *   text     16 hexadecimal digits of the id, 48 of the secret
 *   handle   the id
 *   fabric   8 bytes of the id, 24 of the secret, zeros
 */
#include "npu/share_inside.h"
#include "base/fail.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define BAD 0xffu

bly_status blyi_key_draw(struct blyi_key_draft *draft)
{
    uint8_t bytes[sizeof draft->id + BLYI_KEY_SECRET];
    for (size_t got = 0; got < sizeof bytes;) {
        ssize_t n = getrandom(bytes + got, sizeof bytes - got, 0);
        if (n < 0 && errno != EINTR)
            return blyi_fail(BLY_E_SYSTEM, "the system has no random bytes for a key: %s",
                             strerror(errno));
        got += n > 0 ? (size_t)n : 0;
    }
    memcpy(&draft->id, bytes, sizeof draft->id);
    memcpy(draft->secret, bytes + sizeof draft->id, BLYI_KEY_SECRET);
    draft->id += draft->id == 0;
    return BLY_OK;
}

void blyi_key_write(const struct blyi_key_draft *draft, void *out)
{
    if (draft->kind == BLYI_KEY_HANDLE) {
        memcpy(out, &draft->id, sizeof draft->id);
    } else if (draft->kind == BLYI_KEY_FABRIC) {
        memset(out, 0, BLYI_KEY_FABRIC_SIZE);
        memcpy(out, &draft->id, sizeof draft->id);
        memcpy((char *)out + sizeof draft->id, draft->secret, BLYI_KEY_SECRET);
    } else {
        static const char digits[] = "0123456789abcdef";
        char *text = out;
        for (int i = 0; i < 16; i++)
            text[i] = digits[draft->id >> (60 - 4 * i) & 15];
        for (int i = 0; i < BLYI_KEY_SECRET; i++) {
            text[16 + 2 * i] = digits[draft->secret[i] >> 4];
            text[17 + 2 * i] = digits[draft->secret[i] & 15];
        }
        text[BLYI_KEY_TEXT_SIZE - 1] = '\0';
    }
}

static uint8_t digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (uint8_t)(c - '0');
    return c >= 'a' && c <= 'f' ? (uint8_t)(c - 'a' + 10) : BAD;
}

static bool read_text(const char *text, struct blyi_key_draft *out)
{
    uint8_t digits[BLYI_KEY_TEXT_SIZE - 1];
    size_t length = strnlen(text, BLYI_KEY_TEXT_SIZE - 1);
    for (size_t i = 0; i < length; i++)
        if ((digits[i] = digit_of(text[i])) == BAD) {
            blyi_fail(BLY_E_INVALID,
                      "not a key: its character %zu of 64 is no hexadecimal digit (0-9, a-f)",
                      i + 1);
            return false;
        }
    if (length < BLYI_KEY_TEXT_SIZE - 1) {
        blyi_fail(BLY_E_INVALID, "not a key: it has %zu characters, a key has 64", length);
        return false;
    }
    out->id = 0;
    for (int i = 0; i < 16; i++)
        out->id = out->id << 4 | digits[i];
    for (int i = 0; i < BLYI_KEY_SECRET; i++)
        out->secret[i] = (uint8_t)(digits[16 + 2 * i] << 4 | digits[17 + 2 * i]);
    return true;
}

bool blyi_key_read(struct blyi_key_form form, struct blyi_key_draft *out)
{
    out->kind = form.kind;
    if (form.kind == BLYI_KEY_TEXT)
        return read_text(form.bytes, out);
    memcpy(&out->id, form.bytes, sizeof out->id);
    memset(out->secret, 0, sizeof out->secret);
    if (form.kind == BLYI_KEY_HANDLE)
        return true;
    const uint8_t *bytes = form.bytes;
    uint8_t rest = 0;
    memcpy(out->secret, bytes + sizeof out->id, BLYI_KEY_SECRET);
    for (size_t i = sizeof out->id + BLYI_KEY_SECRET; i < BLYI_KEY_FABRIC_SIZE; i++)
        rest |= bytes[i];
    if (rest != 0)
        blyi_fail(BLY_E_INVALID, "not a fabric handle: bytes behind its first 32 are not 0");
    return rest == 0;
}

/* "key 1a2b3c4d...": enough to tell keys apart in a log, and useless to whoever reads it. */
const char *blyi_key_name(const struct blyi_key_draft *draft, char buf[48])
{
    static const char *const kinds[] = {"key", "shareable handle", "fabric handle"};
    snprintf(buf, 48, "%s %08" PRIx64 "...", kinds[draft->kind], draft->id >> 32);
    return buf;
}

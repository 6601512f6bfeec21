/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/unfinished.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <belay/base.h>
#include "base/json.h"
#include "observe/module.h"

/* As the writer of JSON begins them: keys that no other report begins with. */
#define WAITING_HEAD "{\n  \"unfinished\": true,\n  \"message\""
#define RUNNING_HEAD "{\n  \"unfinished\": true,\n  \"program\""
#define UNUSED_HEAD  "{\n  \"unused\": true,"

char *blyi_unfinished_text(enum blyi_unfinished kind)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    struct blyi_json json;
    if (out == NULL)
        return NULL;
    blyi_json_init(&json, out);
    blyi_json_begin_object(&json, NULL);
    blyi_json_bool(&json, "unfinished", true);
    if (kind == BLYI_UNFINISHED_RUNNING) {
        char program[PATH_MAX];
        blyi_module_program(program);
        blyi_json_text(&json, "program", program);
        blyi_json_int(&json, "pid", (int)getpid());
        blyi_json_text(&json, "message",
                       "this process has not ended yet, or a signal or _exit ended it");
    } else {
        blyi_json_text(&json, "message",
                       "no process has reported: none used a card, or none has ended by itself");
    }
    blyi_json_text(&json, "version", bly_version());
    blyi_json_end_object(&json);
    fputc('\n', out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static bool begins_with(const char *text, size_t length, const char *head)
{
    return length >= strlen(head) && memcmp(text, head, strlen(head)) == 0;
}

enum blyi_unfinished blyi_unfinished_kind(const char *text, size_t length)
{
    if (begins_with(text, length, WAITING_HEAD))
        return BLYI_UNFINISHED_WAITING;
    if (begins_with(text, length, RUNNING_HEAD))
        return BLYI_UNFINISHED_RUNNING;
    return begins_with(text, length, UNUSED_HEAD) ? BLYI_UNFINISHED_UNUSED : BLYI_UNFINISHED_NOT;
}

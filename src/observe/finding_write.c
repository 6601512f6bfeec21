/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/finding_write.h"

#include <inttypes.h>
#include <string.h>

static void put_ids(FILE *out, const struct blyi_finding *finding)
{
    fprintf(out, "   id%s", finding->count == 1 ? "" : "s");
    for (uint32_t i = 0; i < finding->n_ids; i++)
        fprintf(out, " %" PRIu32, finding->ids[i]);
    fputs(finding->count > finding->n_ids ? " ...\n" : "\n", out);
}

const char *blyi_short_file(const char *file, const char *folder)
{
    size_t length = folder != NULL ? strlen(folder) : 0;
    if (length > 1 && strncmp(file, folder, length) == 0 && file[length] == '/')
        return file + length + 1;
    return file;
}

static void put_site(FILE *out, const struct blyi_finding_site *site,
                     const struct blyi_finding_places *places)
{
    char text[BLYI_SOURCE_TEXT];
    struct blyi_source source = places->source(places->arg, site->site);
    source.file = (char *)(uintptr_t)blyi_short_file(source.file, places->folder);
    const char *words = site->words[0] != '\0' ? site->words : blyi_role_words(site->role);
    fprintf(out, "   %s %s\n", words, blyi_source_text(&source, text));
}

static void put_lines(FILE *out, const char *lines)
{
    while (*lines != '\0') {
        const char *end = strchr(lines, '\n');
        int length = end != NULL ? (int)(end - lines) : (int)strlen(lines);
        fprintf(out, "   %.*s\n", length, lines);
        lines += length + (end != NULL);
    }
}

/* Whether count is of occurrences, and not of things. */
static bool repeats(const struct blyi_finding *finding)
{
    return finding->kind >= BLYI_FINDING_DOUBLE_FREE && finding->count > 1;
}

void blyi_finding_write_text(FILE *out, size_t number, const struct blyi_finding *finding,
                             const struct blyi_finding_places *places)
{
    fprintf(out, "\n%zu. %s: %s\n", number, blyi_finding_key(finding->kind), finding->message);
    if (finding->address != 0 && finding->kind < BLYI_FINDING_DOUBLE_FREE)
        fprintf(out, "   %s 0x%" PRIx64 "\n", finding->count == 1 ? "at" : "lowest at",
                finding->address);
    if (finding->n_ids > 0)
        put_ids(out, finding);
    for (uint32_t i = 0; i < finding->n_sites; i++)
        put_site(out, &finding->sites[i], places);
    put_lines(out, finding->detail);
    if (repeats(finding))
        fprintf(out, "   %" PRIu64 " times; this was the first\n", finding->count);
    fprintf(out, "   to do: %s\n", blyi_finding_cure(finding));
}

static void put_numbers(struct blyi_json *json, const char *key, const uint32_t *numbers,
                        uint32_t n)
{
    blyi_json_begin_array(json, key);
    for (uint32_t i = 0; i < n; i++)
        blyi_json_uint(json, NULL, numbers[i]);
    blyi_json_end_array(json);
}

void blyi_finding_write_json(struct blyi_json *json, const struct blyi_finding *finding,
                             const struct blyi_finding_places *places)
{
    bool streams = finding->kind == BLYI_FINDING_LEAKED_STREAM;
    bool events = finding->kind == BLYI_FINDING_LEAKED_EVENT;
    blyi_json_begin_object(json, NULL);
    blyi_json_text(json, "kind", blyi_finding_key(finding->kind));
    blyi_json_text(json, "message", finding->message);
    blyi_json_int(json, "card", finding->card);
    blyi_json_uint(json, "address", finding->address);
    blyi_json_uint(json, "bytes", finding->bytes);
    blyi_json_uint(json, "count", finding->count);
    put_numbers(json, "streams", streams ? finding->ids : finding->streams,
                streams ? finding->n_ids : finding->n_streams);
    put_numbers(json, "events", finding->ids, events ? finding->n_ids : 0);
    put_numbers(json, "notifies", finding->ids,
                finding->kind == BLYI_FINDING_LEAKED_NOTIFY ? finding->n_ids : 0);
    if (finding->kind == BLYI_FINDING_LEAKED_GRAPH)
        put_numbers(json, "graphs", finding->ids, finding->n_ids);
    if (finding->kind == BLYI_FINDING_LEAKED_CONTEXT)
        put_numbers(json, "contexts", finding->ids, finding->n_ids);
    if (finding->kind == BLYI_FINDING_LEAKED_QUEUE)
        put_numbers(json, "queues", finding->ids, finding->n_ids);
    blyi_json_uint(json, "backed", finding->backed);
    blyi_json_uint(json, "reset_freed", finding->reset);
    blyi_json_begin_array(json, "sites");
    for (uint32_t i = 0; i < finding->n_sites; i++) {
        struct blyi_source source = places->source(places->arg, finding->sites[i].site);
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "role", blyi_role_key(finding->sites[i].role));
        blyi_json_text(json, "function", source.function);
        blyi_json_text(json, "file", source.file);
        blyi_json_uint(json, "line", source.line);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    if (finding->detail[0] != '\0')
        blyi_json_text(json, "detail", finding->detail);
    blyi_json_text(json, "to_do", blyi_finding_cure(finding));
    blyi_json_end_object(json);
}

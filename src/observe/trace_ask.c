/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_ask.c - answers from the names of a trace.
 */
#include <stdio.h>
#include <string.h>

#include "observe/trace_inside.h"

bool blyi_trace_record(const struct blyi_trace *trace, size_t *cursor, uint32_t *type,
                       const void **bytes, size_t *length)
{
    struct blyi_trace_record head;
    const struct blyi_trace_names *names = &trace->names;
    if (*cursor >= names->size)
        return false;
    memcpy(&head, names->bytes + *cursor, sizeof(head)); /* its sizes were checked */
    *type = head.type;
    *bytes = names->bytes + *cursor + sizeof(head);
    *length = head.length;
    *cursor += sizeof(head) + (((size_t)head.length + 7) & ~(size_t)7);
    return true;
}

int blyi_trace_names_kind(const struct blyi_trace_names *names, uint32_t kind)
{
    const uint32_t *known = blyi_map_get(&names->kinds, kind);
    return known != NULL ? (int)*known : -1;
}

static void describe_site(const struct blyi_trace *trace, const struct blyi_trace_site_entry *site,
                          struct blyi_trace_site *out)
{
    const struct blyi_trace_module *module = blyi_map_get(&trace->names.modules, site->module);
    *out = (struct blyi_trace_site){.module = module ? module->path : "",
                                    .build_id = module ? module->build_id : "",
                                    .offset = site->offset,
                                    .function = site->function,
                                    .source = site->source,
                                    .line = site->line};
}

bool blyi_trace_site(const struct blyi_trace *trace, uint32_t id, struct blyi_trace_site *out)
{
    const struct blyi_trace_site_entry *site = blyi_map_get(&trace->names.sites, id);
    if (site != NULL)
        describe_site(trace, site, out);
    return site != NULL;
}

bool blyi_trace_next_site(const struct blyi_trace *trace, size_t *cursor, uint32_t *id,
                          struct blyi_trace_site *out)
{
    uint64_t key;
    void *site;
    if (!blyi_map_next(&trace->names.sites, cursor, &key, &site))
        return false;
    *id = (uint32_t)key;
    describe_site(trace, site, out);
    return true;
}

void blyi_trace_set_source(struct blyi_trace *trace, uint32_t id, const char *function,
                           const char *file, uint32_t line)
{
    struct blyi_trace_site_entry *site = blyi_map_get(&trace->names.sites, id);
    if (site == NULL)
        return;
    const char *kept_function = blyi_trace_keep_text(&trace->names, function, strlen(function));
    const char *kept_file = blyi_trace_keep_text(&trace->names, file, strlen(file));
    if (kept_function == NULL || kept_file == NULL)
        return;
    site->function = kept_function;
    site->source = kept_file;
    site->line = line;
}

const uint32_t *blyi_trace_stack(const struct blyi_trace *trace, uint32_t id, size_t *n)
{
    const struct blyi_trace_stack_entry *stack = blyi_map_get(&trace->names.stacks, id);
    *n = stack ? stack->n : 0;
    return stack ? stack->sites : NULL;
}

const char *blyi_trace_name(const struct blyi_trace *trace, uint32_t id)
{
    const char *const *name = blyi_map_get(&trace->names.names, id);
    return name != NULL && *name != NULL ? *name : "";
}

bool blyi_trace_range(const struct blyi_trace *trace, uint32_t id, struct blyi_trace_range *out)
{
    const struct blyi_trace_range *range = blyi_map_get(&trace->names.ranges, id);
    if (range == NULL)
        return false;
    *out = *range;
    return true;
}

bool blyi_trace_thread(const struct blyi_trace *trace, uint32_t id, struct blyi_trace_thread *out)
{
    const struct blyi_trace_thread *thread = blyi_map_get(&trace->names.threads, id);
    if (thread == NULL)
        return false;
    *out = *thread;
    return true;
}

const struct blyi_trace_card *blyi_trace_cards(const struct blyi_trace *trace, size_t *n)
{
    *n = trace->names.n_cards;
    return trace->names.cards;
}

const char *blyi_trace_comment(const struct blyi_trace *trace)
{
    return trace->names.comment;
}

const char *blyi_trace_site_text(const struct blyi_trace *trace, uint32_t id,
                                 char buf[BLYI_TRACE_SITE_TEXT])
{
    struct blyi_trace_site site;
    if (!blyi_trace_site(trace, id, &site)) {
        snprintf(buf, BLYI_TRACE_SITE_TEXT, "site unknown");
    } else if (site.function[0] != '\0' && site.source[0] != '\0' && site.line > 0) {
        snprintf(buf, BLYI_TRACE_SITE_TEXT, "%.200s %.260s:%u", site.function, site.source,
                 site.line);
    } else if (site.function[0] != '\0') {
        snprintf(buf, BLYI_TRACE_SITE_TEXT, "%.200s", site.function);
    } else {
        const char *slash = strrchr(site.module, '/');
        snprintf(buf, BLYI_TRACE_SITE_TEXT, "%.200s+0x%llx", slash ? slash + 1 : site.module,
                 (unsigned long long)site.offset);
    }
    return buf;
}

/* Written from its end: the innermost is at hand first. */
const char *blyi_trace_range_text(const struct blyi_trace *trace, uint32_t id,
                                  char buf[BLYI_TRACE_RANGE_TEXT])
{
    size_t start = BLYI_TRACE_RANGE_TEXT - 1;
    struct blyi_trace_range range;
    buf[start] = '\0';
    for (bool first = true; id != 0 && blyi_trace_range(trace, id, &range); first = false) {
        const char *name = blyi_trace_name(trace, range.name);
        size_t length = strlen(name);
        if (length + !first > start)
            break; /* the outermost ones are left out */
        if (!first)
            buf[--start] = '/';
        start -= length;
        memcpy(buf + start, name, length);
        id = range.parent;
    }
    memmove(buf, buf + start, BLYI_TRACE_RANGE_TEXT - start);
    return buf;
}

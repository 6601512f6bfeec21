/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_sites.c - functions and lines for a recording that was not closed, and so has none.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sources.h"
#include "trace_command.h"

struct module {
    const char *path, *build_id;
    struct sources *sources; /* NULL: is not here, or not the same */
};

struct modules {
    struct module *at;
    size_t n, room;
};

static struct sources *sources_of(struct modules *modules, const struct blyi_trace_site *site)
{
    for (size_t i = 0; i < modules->n; i++)
        if (modules->at[i].path == site->module)
            return modules->at[i].sources;
    if (modules->n == modules->room) {
        size_t room = 2 * modules->room + 16;
        struct module *bigger = realloc(modules->at, room * sizeof(*bigger));
        if (bigger == NULL)
            return NULL;
        modules->at = bigger;
        modules->room = room;
    }
    /* Without a build id there is no telling whether it is the same. */
    struct sources *sources =
        site->build_id[0] != '\0' ? sources_open(site->module, site->build_id) : NULL;
    modules->at[modules->n++] = (struct module){site->module, site->build_id, sources};
    return sources;
}

void trace_name_sites(struct blyi_trace *trace)
{
    static struct source source; /* large */
    struct modules modules = {0};
    struct blyi_trace_site site;
    size_t cursor = 0;
    uint32_t id;
    while (blyi_trace_next_site(trace, &cursor, &id, &site)) {
        if (site.function[0] != '\0' || site.module[0] == '\0')
            continue;
        struct sources *sources = sources_of(&modules, &site);
        if (sources != NULL && sources_find(sources, site.offset, &source))
            blyi_trace_set_source(trace, id, source.function, source.file,
                                  source.line > 0 ? (uint32_t)source.line : 0);
    }
    for (size_t i = 0; i < modules.n; i++)
        if (modules.at[i].sources != NULL)
            sources_close(modules.at[i].sources);
    free(modules.at);
}

bool trace_is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

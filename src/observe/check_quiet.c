/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/check_quiet.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"

#define LINE_MAX_BYTES 1024

struct blyi_quiet_rule {
    char kind[32], function[256], file[512];
};

static bool names_a_kind(const char *glob)
{
    for (int i = 0; i < BLYI_FINDING_KIND_COUNT; i++)
        if (fnmatch(glob, blyi_finding_key((enum blyi_finding_kind)i), 0) == 0)
            return true;
    return false;
}

static bly_status add_rule(struct blyi_quiet *quiet, const struct blyi_quiet_rule *rule)
{
    if (quiet->n == quiet->room) {
        size_t room = 2 * quiet->room + 8;
        struct blyi_quiet_rule *rules = blyi_host_realloc(quiet->rules, room * sizeof(*rules));
        if (rules == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu suppressions", room);
        quiet->rules = rules;
        quiet->room = room;
    }
    quiet->rules[quiet->n++] = *rule;
    return BLY_OK;
}

static bly_status read_line(struct blyi_quiet *quiet, const char *path, int number, char *line)
{
    struct blyi_quiet_rule rule = {"", "*", "*"};
    char rest[2];
    line[strcspn(line, "#\n")] = '\0';
    int n = sscanf(line, "%31s %255s %511s %1s", rule.kind, rule.function, rule.file, rest);
    if (n <= 0)
        return BLY_OK;
    if (n > 3)
        return blyi_fail(BLY_E_PARSE, "%s:%d: more than KIND, FUNCTION and FILE", path, number);
    if (!names_a_kind(rule.kind))
        return blyi_fail(BLY_E_PARSE, "%s:%d: there is no kind of finding '%s'", path, number,
                         rule.kind);
    return add_rule(quiet, &rule);
}

bly_status blyi_quiet_read(const char *path, struct blyi_quiet *out)
{
    char line[LINE_MAX_BYTES];
    *out = (struct blyi_quiet){NULL, 0, 0};
    if (path[0] == '\0')
        return BLY_OK;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return blyi_fail(BLY_E_IO, "suppressions %s: %s", path, strerror(errno));
    bly_status status = BLY_OK;
    for (int n = 1; status == BLY_OK && fgets(line, sizeof(line), file) != NULL; n++)
        status = read_line(out, path, n, line);
    fclose(file);
    if (status != BLY_OK)
        blyi_quiet_fini(out);
    return status;
}

void blyi_quiet_fini(struct blyi_quiet *quiet)
{
    blyi_host_free(quiet->rules);
    *quiet = (struct blyi_quiet){NULL, 0, 0};
}

static bool kind_fits(const struct blyi_quiet_rule *rule, enum blyi_finding_kind kind)
{
    return fnmatch(rule->kind, blyi_finding_key(kind), 0) == 0;
}

bool blyi_quiet_may(const struct blyi_quiet *quiet, enum blyi_finding_kind kind)
{
    for (size_t i = 0; i < quiet->n; i++)
        if (kind_fits(&quiet->rules[i], kind))
            return true;
    return false;
}

static bool place_fits(const struct blyi_quiet_rule *rule, const struct blyi_source *source)
{
    return fnmatch(rule->function, source->function, 0) == 0 &&
           fnmatch(rule->file, source->file, 0) == 0;
}

bool blyi_quiet_fits(const struct blyi_quiet *quiet, const struct blyi_finding *finding,
                     const struct blyi_finding_places *places)
{
    for (uint32_t s = 0; quiet->n > 0 && s < finding->n_sites; s++) {
        struct blyi_source source = places->source(places->arg, finding->sites[s].site);
        for (size_t i = 0; i < quiet->n; i++)
            if (kind_fits(&quiet->rules[i], finding->kind) && place_fits(&quiet->rules[i], &source))
                return true;
    }
    return false;
}

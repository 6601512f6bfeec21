/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_input.c - see insight_input.h.
 */
#include "insight_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace_command.h"

static bool take_limit(const char *text, size_t *limit)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || value == 0 ||
        value > 1000000)
        return false;
    *limit = value;
    return true;
}

/* What stands behind an option: in the same word after "=", else the next word. NULL: nothing. */
static const char *value_of(int argc, char **argv, int *at)
{
    const char *equals = strncmp(argv[*at], "--", 2) == 0 ? strchr(argv[*at], '=') : NULL;
    if (equals != NULL)
        return equals + 1;
    return *at + 1 < argc ? argv[++*at] : NULL;
}

static bool is_option(const char *word, const char *name)
{
    size_t n = strlen(name);
    return strncmp(word, name, n) == 0 && (word[n] == '\0' || (word[1] == '-' && word[n] == '='));
}

int insight_arguments(const char *command, const char *known, int n_files, int argc, char **argv,
                      struct insight_request *request)
{
    static const struct {
        char key;
        const char *name;
    } options[] = {{'j', "--json"}, {'b', "--by"}, {'o', "-o"}, {'n', "-n"}};
    int n = 0;
    *request = (struct insight_request){0};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        char key = '\0';
        for (size_t k = 0; k < BLYI_COUNT(options); k++)
            if (is_option(word, options[k].name) && strchr(known, options[k].key) != NULL)
                key = options[k].key;
        if (key == '\0' && word[0] == '-' && word[1] != '\0')
            return usage_error(command, "%s: no option \"%s\"", command, word);
        if (key == '\0') {
            if (n == n_files)
                return usage_error(command, "%s: \"%s\" is one file too many", command, word);
            request->files[n++] = word;
            continue;
        }
        if (key != 'j' && (value = value_of(argc, argv, &i)) == NULL)
            return usage_error(command, "%s: what behind \"%s\"?", command, word);
        if (key == 'j')
            request->json = true;
        else if (key == 'b')
            request->by = value;
        else if (key == 'o')
            request->output = value;
        else if (!take_limit(value, &request->limit))
            return usage_error(command, "%s: \"%s\" is no number of rows, 1 to 1000000", command,
                               value);
    }
    if (n < n_files)
        return usage_error(command, "%s: %s", command,
                           n_files == 1 ? "which file?" : "two files, please");
    return 0;
}

bool insight_open(const char *path, struct insight_input *out)
{
    if (!trace_input_open(path, &out->input))
        return false;
    trace_name_sites(out->input.trace);
    if (blyi_insight_make(out->input.trace, &out->in) == BLY_OK)
        return true;
    say("%s", bly_last_error());
    trace_input_close(&out->input);
    return false;
}

void insight_close(struct insight_input *input)
{
    blyi_insight_free(input->in);
    trace_input_close(&input->input);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * report_place.c - what BELAY_REPORT names: destinations, by the end of their names.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/fail.h"
#include "observe/report_file.h"

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

bly_status blyi_report_file_parse(const char *destination, const char *folder,
                                  struct blyi_report_file *out)
{
    char here[PATH_MAX] = "";
    struct blyi_report_file file = {.form = BLYI_REPORT_TEXT};
    if (strcmp(destination, "-") == 0) {
        file.to_stderr = true;
        *out = file;
        return BLY_OK;
    }
    if (ends_with(destination, ".json"))
        file.form = BLYI_REPORT_JSON;
    else if (ends_with(destination, ".html"))
        file.form = BLYI_REPORT_PAGE;
    else if (!ends_with(destination, ".txt"))
        return blyi_fail(
            BLY_E_INVALID,
            "BELAY_REPORT \"%s\": a report goes to - (stderr), *.txt, *.json or *.html",
            destination);
    /* The program may change its folder before it ends. */
    if (destination[0] == '/')
        folder = here;
    else if (folder == NULL && (folder = getcwd(here, sizeof(here))) == NULL)
        return blyi_fail(BLY_E_INVALID, "BELAY_REPORT \"%s\": the working folder is gone (%s)",
                         destination, strerror(errno));
    int n =
        snprintf(file.path, sizeof(file.path), "%s%s%s", folder, folder[0] ? "/" : "", destination);
    if (n >= PATH_MAX)
        return blyi_fail(BLY_E_INVALID, "BELAY_REPORT \"%s\": the path is too long", destination);
    file.shared = strstr(file.path, "%p") == NULL;
    *out = file;
    return BLY_OK;
}

bly_status blyi_report_files_parse(const char *list, const char *folder,
                                   struct blyi_report_files *out)
{
    char name[PATH_MAX];
    out->n = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (out->n == BLYI_REPORT_FILES_MAX)
            return blyi_fail(BLY_E_INVALID, "BELAY_REPORT \"%s\": at most %d places", list,
                             BLYI_REPORT_FILES_MAX);
        if (length >= sizeof(name))
            return blyi_fail(BLY_E_INVALID, "BELAY_REPORT \"%s\": the path is too long", list);
        memcpy(name, at, length);
        name[length] = '\0';
        bly_status status = blyi_report_file_parse(name, folder, &out->file[out->n]);
        if (status != BLY_OK)
            return status;
        out->n++;
        at += length;
        if (*at == '\0')
            return BLY_OK;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * report_file.h - where reports go: option REPORT, and files that several processes share.
 *
 *   -        text to stderr
 *   *.txt    text; a process adds its section at the end
 *   *.json   one object; a process that joins a file puts its object into the list "children"
 *            of the first one's
 *   *.html   that object in a page which shows it (report_page.h)
 *   a,b      several of these, with commas between
 *
 * A JSON file or page holds an object that says "unfinished" until the first section comes.
 *
 * "%p" in the name is the process id, so that nobody shares. Otherwise the file is begun anew by
 * the first process that watches while no other one does (a record lock tells),
 * unless REPORT_APPEND is on: `belay run` has begun it then. JSON and pages are whole at every
 * moment, whoever is killed (report_disk.h); of text that others share, the last section may be
 * cut.
 */
#ifndef BLYI_REPORT_FILE_H
#define BLYI_REPORT_FILE_H

#include <belay/base.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum blyi_report_form { BLYI_REPORT_TEXT, BLYI_REPORT_JSON, BLYI_REPORT_PAGE };

struct blyi_report_file {
    bool to_stderr;
    bool shared; /* no %p in the path */
    enum blyi_report_form form;
    char path[PATH_MAX]; /* absolute, %p not yet replaced */
    pid_t first;         /* whose section comes first in a shared file; 0: somebody else's */
    pid_t self;          /* in whose name; 0: the calling process */
};

/* Understands a destination; touches no file. A relative path begins in `folder`, NULL: in the
 * working folder.
 * E_INVALID  not a form that exists (the sentence names those that do), or too long a path */
bly_status blyi_report_file_parse(const char *destination, const char *folder,
                                  struct blyi_report_file *out);

#define BLYI_REPORT_FILES_MAX 4

struct blyi_report_files {
    size_t n;
    struct blyi_report_file file[BLYI_REPORT_FILES_MAX];
};

/* The same for a list with commas. E_INVALID also for an empty place or more than
 * BLYI_REPORT_FILES_MAX of them. */
bly_status blyi_report_files_parse(const char *list, const char *folder,
                                   struct blyi_report_files *out);

/* Begins a shared file for processes that join it with `append`, as `belay run` does; the others
 * need nothing. E_IO. */
bly_status blyi_report_file_new(const struct blyi_report_file *file);
/* Begins or joins the file, see above, for this process. E_IO, E_HOST_MEMORY, E_TIMEOUT. */
bly_status blyi_report_file_begin(struct blyi_report_file *file, bool append);
/* True when no process has reported there or is about to, as far as the file tells. */
bool blyi_report_file_is_unused(const struct blyi_report_file *file);

/* Adds this process's section: `text` ends with a newline, JSON is one object. E_IO; E_TIMEOUT:
 * another process writes for more than two seconds; E_HOST_MEMORY. */
bly_status blyi_report_file_add(const struct blyi_report_file *file, const char *text,
                                size_t length);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * report_disk.h - a file of reports on disk: whole at every moment, shared by processes.
 *
 * What is rewritten is written beside, to "<file>.new", and takes the file's place at once. So the
 * file itself cannot carry locks: a shared one has "<file>.lock" beside it while processes use it.
 * Record locks, because a forked child must not hold what its parent holds. Byte 0 is locked for
 * reading by every process that watches, byte 1 for writing by the one that writes. The last to
 * leave removes it.
 *
 * Where nothing can be put beside the file, or the file has a second name or another owner, it
 * carries the locks itself and is rewritten where it stands, and may be cut by a kill.
 */
#ifndef BLYI_REPORT_DISK_H
#define BLYI_REPORT_DISK_H

#include <belay/base.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct blyi_slice {
    const char *text;
    size_t length;
};

struct blyi_report_disk {
    int fd;      /* of a device or pipe, of the file where nothing goes beside it; else -1 */
    int lock_fd; /* -1: nobody shares it */
    bool is_regular;
    bool beside;
    mode_t mode;
    char path[PATH_MAX]; /* "%p" replaced, links followed */
};

/* Makes the file when it is not there. `pattern` is absolute; "%p" becomes `self`. E_IO, E_INVALID:
 * the path becomes too long. */
bly_status blyi_report_disk_open(const char *pattern, pid_t self, bool shared,
                                 struct blyi_report_disk *out);
/* Of a shared file: true when no other process watches, and none can begin to until keep(). */
bool blyi_report_disk_watch(struct blyi_report_disk *disk);
/* Watches from now on, instead of close(). The descriptor that keeps the lock stays open and is
 * never used again, since the program may close it and get its number for a file of its own. */
void blyi_report_disk_keep(struct blyi_report_disk *disk);
/* Waits for the turn to write; false after two seconds. */
bool blyi_report_disk_turn(struct blyi_report_disk *disk);
/* What stands in it, from host memory that the caller frees. E_HOST_MEMORY, E_IO. */
bly_status blyi_report_disk_read(const struct blyi_report_disk *disk, struct blyi_slice *out);
/* Makes slices, one behind the other, the whole file. E_IO: it is as it was. */
bly_status blyi_report_disk_replace(const struct blyi_report_disk *disk,
                                    const struct blyi_slice *slices, size_t n);
bly_status blyi_report_disk_append(const struct blyi_report_disk *disk, struct blyi_slice text);
bly_status blyi_report_disk_stderr(struct blyi_slice text);
void blyi_report_disk_close(struct blyi_report_disk *disk);
/* The same by who has written and will not again: he watches no more, and whoever is last takes
 * the lock file with him. */
void blyi_report_disk_leave(struct blyi_report_disk *disk);

#endif

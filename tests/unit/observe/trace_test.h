/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_test.h - recordings in a folder of their own, and their files read back.
 */
#ifndef TRACE_TEST_H
#define TRACE_TEST_H

#include "../base/base_test.h"

#include <belay/trace.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/sys.h"
#include "observe/recorder.h"
#include "observe/trace_reader.h"

static char trace_folder[64];

static inline int trace_setup(void **state)
{
    (void)state;
    blyi_option_set(BLYI_OPT_SYMBOLIZER, "/nonexistent"); /* no helper: its answers take time */
    snprintf(trace_folder, sizeof(trace_folder), "/tmp/belay-trace-XXXXXX");
    return mkdtemp(trace_folder) == NULL;
}

static inline int trace_teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", trace_folder);
    return system(command);
}

static inline const char *in_folder(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, 128, "%s/%s", trace_folder, name);
    return path;
}

static inline void start(const char *name, uint64_t ring)
{
    bly_trace_opts opts = bly_trace_opts_default();
    opts.ring = ring;
    assert_ok(bly_trace_start(name ? in_folder(name) : NULL, &opts));
}

static inline struct blyi_trace *open_trace(const char *name)
{
    struct blyi_trace *trace = NULL;
    assert_ok(blyi_trace_open(in_folder(name), &trace));
    return trace;
}

static inline struct blyi_trace_event next_event(struct blyi_trace *trace)
{
    struct blyi_trace_event event;
    assert_true(blyi_trace_next(trace, &event));
    return event;
}

static inline void no_more(struct blyi_trace *trace)
{
    struct blyi_trace_event event;
    assert_false(blyi_trace_next(trace, &event));
    assert_ok(blyi_trace_status(trace));
}

static inline void emit_alloc(uint64_t address, uint64_t asked)
{
    BLYI_PROBE(ALLOC, .card = 0, .address = address, .size = asked, .asked = asked,
               .rounded = asked + 32, .backed = 2 * MiB, .page_kind = BLYI_PAGE_HUGE);
}

static inline void emit_free(uint64_t address, uint64_t asked)
{
    BLYI_PROBE(FREE, .card = 0, .address = address, .size = asked, .asked = asked,
               .rounded = asked + 32, .backed = 2 * MiB, .page_kind = BLYI_PAGE_HUGE);
}

/* Bytes of a file; the caller frees. */
static inline unsigned char *slurp(const char *path, size_t *size)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &about) == 0);
    unsigned char *bytes = malloc((size_t)about.st_size + 1);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)about.st_size), about.st_size);
    close(fd);
    *size = (size_t)about.st_size;
    return bytes;
}

#endif

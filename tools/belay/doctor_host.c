/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_host.c - kernel and processor: what the software card is built from.
 */
#include "doctor.h"

#include "base/option.h"
#include "npu/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

void check_kernel(struct result *result)
{
    struct utsname name;
    int major = 0, minor = 0;
    uname(&name);
    sscanf(name.release, "%d.%d", &major, &minor);
    put_value(result, "%s %s, %s", name.sysname, name.release, name.machine);
    if (major > 6 || (major == 6 && minor >= 1)) {
        put_meaning(result, LEVEL_OK, "new enough for everything that Belay uses");
    } else {
        put_meaning(result, LEVEL_NOTE,
                    "older than 6.1: card memory has small host pages, so unmapping is slower");
        put_advice(result, "use a kernel of 6.1 or later");
    }
}

#if defined(__x86_64__)
static void cpu_features(char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", __builtin_cpu_supports("avx2") ? " avx2" : "",
             __builtin_cpu_supports("avx512f") ? " avx512f" : "",
             __builtin_cpu_supports("sse2") ? " non-temporal stores" : "");
}
#else
static void cpu_features(char *buf, size_t size)
{
    snprintf(buf, size, " as the C library's memcpy finds");
}
#endif

void check_cpu(struct result *result)
{
    cpu_set_t set;
    char features[64];
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    cpu_features(features, sizeof(features));
    put_value(result, "%d usable; copies use:%s", n, features);
    if (n > 1)
        put_meaning(result, LEVEL_OK, "engines run beside the program's own threads");
    else
        put_meaning(result, LEVEL_NOTE,
                    "engines and the program take turns: right results, but no overlap in time");
}

/* The keys, and what becomes of the guard of card memory with or without them. */
void check_protection_keys(struct result *result)
{
    int64_t wanted = blyi_option_int(BLYI_OPT_GUARD);
    bool keys = blyi_guard_has_keys();
    if (keys)
        put_value(result, "available");
    else
        put_value(result, "none (%s)", strerror(errno));
    if (wanted == BLYI_GUARD_OPTION_OFF) {
        put_meaning(result, LEVEL_NOTE,
                    "BELAY_GUARD=off: host code that touches card memory is not stopped");
    } else if (keys && wanted != BLYI_GUARD_OPTION_ALIAS) {
        put_meaning(result, LEVEL_OK,
                    "host code that touches card memory is stopped, as on a "
                    "real card");
    } else if (wanted != BLYI_GUARD_OPTION_AUTO) {
        put_meaning(result, LEVEL_OK,
                    "host code that touches card memory is stopped by a second "
                    "mapping of the card, until a kernel runs");
    } else {
        put_meaning(result, LEVEL_NOTE,
                    "the guard is off: host code that touches card memory by "
                    "mistake is not stopped, as it would be on a real card");
        put_advice(result, "BELAY_GUARD=on stops it here as well, by a second mapping of the "
                           "card, until a kernel runs");
    }
}

/* The word in brackets of "always [madvise] never". */
static void chosen_word(const char *line, char *buf, size_t size)
{
    const char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    if (close != NULL)
        snprintf(buf, size, "%.*s", (int)(close - open - 1), open + 1);
    else
        snprintf(buf, size, "unknown");
}

void check_huge_pages(struct result *result)
{
    char line[128], enabled[32], shmem[32];
    const char *folder = "/sys/kernel/mm/transparent_hugepage";
    if (access(folder, F_OK) != 0) {
        put_value(result, "none in this kernel");
        put_meaning(result, LEVEL_NOTE,
                    "card memory has 4 KiB host pages: unmapping 2 MiB takes 200 us, not 10");
        return;
    }
    chosen_word(read_line_of("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line)),
                enabled, sizeof(enabled));
    chosen_word(
        read_line_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled", line, sizeof(line)),
        shmem, sizeof(shmem));
    put_value(result, "anonymous memory: %s, shared memory: %s", enabled, shmem);
    put_meaning(result, LEVEL_OK,
                "card memory asks for each huge page itself, so any of these settings will do; "
                "see collapse");
}

/* Collapses one huge page of a memfd as the card does: a byte written through the file, then
 * MADV_COLLAPSE over the frame. Returns 0 or an error number. */
static int try_collapse(uint64_t *took_ns)
{
    const size_t frame = 2 * MiB;
    struct timespec start, end;
    int error = 0;
    int fd = memfd_create("belay-doctor", MFD_CLOEXEC);
    if (fd < 0)
        return errno;
    if (ftruncate(fd, (off_t)frame) != 0 || pwrite(fd, "", 1, 0) != 1)
        error = errno;
    char *space = mmap(NULL, 2 * frame, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (error == 0 && space != MAP_FAILED) {
        char *at = (char *)(uintptr_t)blyi_align_up((uintptr_t)space, frame);
        at = mmap(at, frame, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
        clock_gettime(CLOCK_MONOTONIC, &start);
        if (at == MAP_FAILED || madvise(at, frame, MADV_COLLAPSE) != 0)
            error = errno;
        clock_gettime(CLOCK_MONOTONIC, &end);
        *took_ns = (uint64_t)(end.tv_sec - start.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec -
                   (uint64_t)start.tv_nsec;
    }
    if (space != MAP_FAILED)
        munmap(space, 2 * frame);
    close(fd);
    return error;
}

void check_collapse(struct result *result)
{
    uint64_t took = 0;
    int error = try_collapse(&took);
    if (error == 0) {
        put_value(result, "works (2 MiB in %llu us)", (unsigned long long)took / 1000);
        put_meaning(result, LEVEL_OK, "each 2 MiB frame of a card is one huge page of the host");
        return;
    }
    put_value(result, "does not work (%s)", strerror(error));
    put_meaning(result, LEVEL_NOTE,
                "card memory has 4 KiB host pages: right results, slower mapping");
    put_advice(result, "MADV_COLLAPSE needs Linux 6.1 and free memory in pieces of 2 MiB");
}

void check_userfaultfd(struct result *result)
{
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (fd >= 0) {
        close((int)fd);
        put_value(result, "available for user mode");
        put_meaning(result, LEVEL_OK, "nothing in this release needs it; tiers will");
        return;
    }
    put_value(result, "none (%s)", strerror(errno));
    put_meaning(result, LEVEL_NOTE,
                "nothing in this release needs it; memory tiers of a later one will");
}

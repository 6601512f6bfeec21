/* SPDX-License-Identifier: Apache-2.0
 *
 * stamp.c - see stamp.h.
 *
 * A line of nanoseconds over ticks, which is valid for a span of ticks. Who finds it too old
 * lays the next one: it begins where the old one has led, so that stamps do not jump, and meets
 * the clock at the end of its span.
 */
#include "base/stamp.h"
#include "base/clock.h"
#include "base/compiler.h"

#if defined(__x86_64__)

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#define SPAN_NS    10000000u /* of a line */
#define MEASURE_NS 2000000u  /* the least time over which the rate is known well enough */
#define AHEAD_NS   10000u    /* a line that is further from the clock is given up */
#define LOOK_TICKS 20000u    /* a few us */
#define SHIFT      32

/* Guarded by `version`: odd while it changes, else even and what was read is of one piece. */
static struct {
    atomic_uint version;
    _Atomic uint64_t ticks, ns; /* where the line begins */
    _Atomic uint64_t span;      /* ticks; 0: there is no line */
    _Atomic uint64_t rate;      /* ns in 2^-32 a tick */
} line;

/* Of whoever lays a line; guarded by `version` as well. */
static uint64_t first_ticks, first_ns;

enum { UNKNOWN, YES, NO };
static atomic_int trusted;

/* The kernel's clock is the counter: it has seen that all processors agree. */
static bool ask_kernel(void)
{
    char text[8] = "";
    int error = errno;
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    errno = error;
    return n > 0 && strcmp(text, "tsc\n") == 0;
}

static uint64_t scaled(uint64_t ticks, uint64_t rate)
{
    return (uint64_t)((unsigned __int128)ticks * rate >> SHIFT);
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static uint64_t load(_Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* `version` is held. Returns the time at `ticks`, where the clock shows `ns`. */
static uint64_t lay_locked(uint64_t ticks, uint64_t ns)
{
    uint64_t span = load(&line.span), begin = ns;
    if (first_ns == 0 || ticks <= first_ticks || ns < first_ns) {
        first_ticks = ticks;
        first_ns = ns;
    }
    if (span > 0 && ticks - load(&line.ticks) < 100 * span)
        begin = load(&line.ns) + scaled(ticks - load(&line.ticks), load(&line.rate));
    if (begin + AHEAD_NS < ns || begin > ns + AHEAD_NS)
        begin = ns; /* the machine slept, or its clock was set anew */
    if (ns - first_ns < MEASURE_NS) {
        store(&line.span, 0);
        return ns;
    }
    uint64_t rate =
        (uint64_t)(((unsigned __int128)(ns - first_ns) << SHIFT) / (ticks - first_ticks));
    span = (uint64_t)(((unsigned __int128)SPAN_NS << SHIFT) / rate);
    store(&line.ticks, ticks);
    store(&line.ns, begin);
    store(&line.span, span);
    store(&line.rate, (uint64_t)(((unsigned __int128)(ns + SPAN_NS - begin) << SHIFT) / span));
    return begin;
}

/* Clock and counter at one moment. False: this thread was held up between the two. */
static bool look_at_both(uint64_t *ticks, uint64_t *ns)
{
    for (int attempt = 0; attempt < 4; attempt++) {
        *ticks = __rdtsc();
        *ns = blyi_clock_ns();
        if (__rdtsc() - *ticks < LOOK_TICKS)
            return true;
    }
    return false;
}

/* Not laid by two, nor within a signal handler that interrupts who does: they take the clock. */
BLYI_COLD static uint64_t lay(unsigned seen)
{
    uint64_t ticks, ns;
    int known = atomic_load_explicit(&trusted, memory_order_relaxed);
    if (known == UNKNOWN) {
        known = ask_kernel() ? YES : NO;
        atomic_store_explicit(&trusted, known, memory_order_relaxed);
    }
    if (known == NO || (seen & 1) != 0 || !look_at_both(&ticks, &ns) ||
        !atomic_compare_exchange_strong_explicit(&line.version, &seen, seen + 1,
                                                 memory_order_acquire, memory_order_relaxed))
        return blyi_clock_ns();
    atomic_thread_fence(memory_order_release); /* the odd version before what follows */
    ns = lay_locked(ticks, ns);
    atomic_store_explicit(&line.version, seen + 2, memory_order_release);
    return ns;
}

uint64_t blyi_stamp_ns(void)
{
    if (unlikely(blyi_clock_is_virtual()))
        return blyi_clock_ns();
    unsigned version = atomic_load_explicit(&line.version, memory_order_acquire);
    uint64_t gone = __rdtsc() - load(&line.ticks);
    uint64_t span = load(&line.span), ns = load(&line.ns), rate = load(&line.rate);
    atomic_thread_fence(memory_order_acquire); /* what was read before the version below */
    if (unlikely(gone >= span || (version & 1) != 0 ||
                 atomic_load_explicit(&line.version, memory_order_relaxed) != version))
        return lay(version);
    return ns + scaled(gone, rate);
}

#else

uint64_t blyi_stamp_ns(void)
{
    return blyi_clock_ns();
}

#endif

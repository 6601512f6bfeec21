/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - see bench.h.
 */
#include "bench/bench.h"

#include <dirent.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_sleep_ms(unsigned ms)
{
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
}

long bench_preempted(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

void bench_cannot(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("cannot measure: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ── CPUs ─────────────────────────────────────────────────────────────────────────────────── */

static cpu_set_t allowed; /* as the process was started */

static void read_allowed(void)
{
    if (CPU_COUNT(&allowed) == 0)
        sched_getaffinity(0, sizeof(allowed), &allowed);
}

int bench_cpus(void)
{
    read_allowed();
    return CPU_COUNT(&allowed);
}

static void pin_thread(pid_t tid, int nth)
{
    nth %= bench_cpus();
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || nth-- > 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(tid, sizeof(one), &one);
        return;
    }
}

void bench_pin(int nth)
{
    pin_thread(0, nth);
}

void bench_pin_others(int nth)
{
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        pid_t tid = (pid_t)atoi(entry->d_name);
        if (tid > 0 && tid != gettid())
            pin_thread(tid, nth);
    }
    closedir(tasks);
}

/* ── The machine ──────────────────────────────────────────────────────────────────────────── */

/* First line of a file; "" when it cannot be read. */
static const char *first_line(const char *path, char *buf, size_t size)
{
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(buf, (int)size, file) == NULL)
        buf[0] = '\0';
    if (file != NULL)
        fclose(file);
    buf[strcspn(buf, "\n")] = '\0';
    return buf;
}

static const char *cpu_name(char *buf, size_t size)
{
    snprintf(buf, size, "unknown CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL)
        return buf;
    for (char line[512]; fgets(line, sizeof(line), file) != NULL;) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(buf, size, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    fclose(file);
    return buf;
}

static const char *today(char *buf, size_t size)
{
    time_t now = time(NULL);
    struct tm parts;
    strftime(buf, size, "%Y-%m-%d", gmtime_r(&now, &parts));
    return buf;
}

/* A JSON string; control characters become blanks. */
static void print_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    putchar('"');
}

static void print_field(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    print_text(text);
}

static void print_machine(const struct bench *bench)
{
    char cpu[256], huge[128], shmem[128], load[128], date[32];
    struct utsname kernel;
    uname(&kernel);
    cpu_name(cpu, sizeof(cpu));
    first_line("/sys/kernel/mm/transparent_hugepage/enabled", huge, sizeof(huge));
    first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shmem, sizeof(shmem));
    first_line("/proc/loadavg", load, sizeof(load));
    today(date, sizeof(date));

    if (bench->json) {
        printf("{\"bench\": \"%s\"", bench->name);
        print_field("cpu", cpu);
        printf(", \"cpus\": %d", bench_cpus());
        print_field("kernel", kernel.release);
        print_field("date", date);
        print_field("huge_pages", huge);
        print_field("shmem_huge_pages", shmem);
        print_field("load", load);
        puts("}");
        return;
    }
    printf("%s, %d CPUs, Linux %s, %s\n", cpu, bench_cpus(), kernel.release, date);
    printf("huge pages: %s; shmem: %s; load: %s\n", huge, shmem, load);
    for (char **variable = environ; *variable != NULL; variable++) {
        if (strncmp(*variable, "BELAY_", 6) == 0)
            printf("%s\n", *variable);
    }
}

void bench_begin(struct bench *bench, const char *name, int argc, char **argv)
{
    *bench = (struct bench){.name = name};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            bench->json = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            bench->quick = true;
        } else {
            fprintf(stderr, "usage: %s [--json] [--quick]\n", name);
            exit(strcmp(argv[i], "--help") == 0 ? 0 : 2);
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_allowed();
    print_machine(bench);
}

void bench_end(const struct bench *bench)
{
    char load[128];
    first_line("/proc/loadavg", load, sizeof(load));
    bench_note(bench, "load at the end: %s", load);
}

uint64_t bench_huge_bytes(const void *address, size_t size)
{
    uintptr_t start = (uintptr_t)address, end = start + size;
    uint64_t huge = 0;
    bool inside = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    if (file == NULL)
        return 0;
    for (char line[512]; fgets(line, sizeof(line), file) != NULL;) {
        unsigned long from, to, kib;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from < end && to > start;
        else if (inside && (sscanf(line, "ShmemPmdMapped: %lu kB", &kib) == 1 ||
                            sscanf(line, "AnonHugePages: %lu kB", &kib) == 1))
            huge += (uint64_t)kib << 10;
    }
    fclose(file);
    return huge < size ? huge : size;
}

/* ── Samples ──────────────────────────────────────────────────────────────────────────────── */

void bench_add(struct bench_samples *samples, double value)
{
    if (samples->n < BENCH_SAMPLES_MAX)
        samples->value[samples->n++] = value;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double nth_value(const struct bench_samples *samples, int nth)
{
    struct bench_samples sorted = *samples;
    if (sorted.n == 0)
        return 0;
    qsort(sorted.value, (size_t)sorted.n, sizeof(sorted.value[0]), compare);
    return sorted.value[nth];
}

double bench_median(const struct bench_samples *samples)
{
    return nth_value(samples, samples->n / 2);
}

double bench_min(const struct bench_samples *samples)
{
    return nth_value(samples, 0);
}

double bench_max(const struct bench_samples *samples)
{
    return nth_value(samples, samples->n - 1);
}

/* ── The table ────────────────────────────────────────────────────────────────────────────── */

/* What a row says, in numbers: medians, the best sample, ratios, whether the target is met. */
struct figures {
    double ours, ours_best, bound, bound_best, ratio, ratio_best;
    bool met;
};

static bool is_rate(const struct bench_row *row)
{
    size_t length = strlen(row->unit);
    return length > 2 && strcmp(row->unit + length - 2, "/s") == 0;
}

static bool is_met(const struct bench_row *row, const struct figures *f)
{
    switch (row->kind) {
    case BENCH_RATIO_AT_MOST:
        return f->ratio <= row->target;
    case BENCH_RATIO_AT_LEAST:
        return f->ratio >= row->target;
    case BENCH_OVER_AT_MOST:
        return f->ours - f->bound <= row->target;
    case BENCH_OURS_AT_MOST:
        return f->ours <= row->target;
    case BENCH_OURS_AT_LEAST:
        return f->ours >= row->target;
    case BENCH_NO_TARGET:
        break;
    }
    return true;
}

static struct figures figures_of(const struct bench_row *row)
{
    double (*best)(const struct bench_samples *) = is_rate(row) ? bench_max : bench_min;
    struct figures f = {.ours = bench_median(row->ours), .ours_best = best(row->ours)};
    if (row->bound != NULL) {
        f.bound = bench_median(row->bound);
        f.bound_best = best(row->bound);
        f.ratio = f.bound > 0 ? f.ours / f.bound : 0;
        f.ratio_best = f.bound_best > 0 ? f.ours_best / f.bound_best : 0;
    }
    f.met = is_met(row, &f);
    return f;
}

static const char *target_text(const struct bench_row *row, const struct figures *f, char *buf,
                               size_t size)
{
    const char *met = f->met ? "met" : "MISSED";
    switch (row->kind) {
    case BENCH_RATIO_AT_MOST:
        snprintf(buf, size, "<= %g x bound: %s", row->target, met);
        break;
    case BENCH_RATIO_AT_LEAST:
        snprintf(buf, size, ">= %g x bound: %s", row->target, met);
        break;
    case BENCH_OVER_AT_MOST:
        snprintf(buf, size, "<= bound + %g: %s (%+.0f)", row->target, met, f->ours - f->bound);
        break;
    case BENCH_OURS_AT_MOST:
        snprintf(buf, size, "<= %g: %s", row->target, met);
        break;
    case BENCH_OURS_AT_LEAST:
        snprintf(buf, size, ">= %g: %s", row->target, met);
        break;
    case BENCH_NO_TARGET:
        buf[0] = '\0';
        break;
    }
    return buf;
}

static char section[512]; /* that the rows belong to */

static void print_row_json(const struct bench *bench, const struct bench_row *row,
                           const struct figures *f)
{
    static const char *const kinds[] = {"none",         "ratio_at_most", "ratio_at_least",
                                        "over_at_most", "ours_at_most",  "ours_at_least"};
    printf("{\"bench\": \"%s\"", bench->name);
    print_field("section", section);
    print_field("what", row->what);
    print_field("unit", row->unit);
    printf(", \"samples\": %d, \"ours\": %.6g, \"ours_best\": %.6g", row->ours->n, f->ours,
           f->ours_best);
    if (row->bound != NULL)
        printf(", \"bound\": %.6g, \"bound_best\": %.6g, \"ratio\": %.4g, \"ratio_best\": %.4g",
               f->bound, f->bound_best, f->ratio, f->ratio_best);
    if (row->kind != BENCH_NO_TARGET)
        printf(", \"target_kind\": \"%s\", \"target\": %g, \"met\": %s", kinds[row->kind],
               row->target, f->met ? "true" : "false");
    puts("}");
}

static const char *number(double value, char buf[32])
{
    int decimals = value != 0 && value < 10 ? 2 : value < 1000 ? 1 : 0;
    snprintf(buf, 32, "%.*f", decimals, value);
    return buf;
}

void bench_row(const struct bench *bench, const struct bench_row *row)
{
    struct figures f = figures_of(row);
    if (bench->json) {
        print_row_json(bench, row, &f);
        return;
    }
    char ours[32], ours_best[32], bound[32] = "", bound_best[32] = "", ratio[32] = "";
    char ratio_best[32] = "", target[64];
    if (row->bound != NULL) {
        number(f.bound, bound);
        number(f.bound_best, bound_best);
        snprintf(ratio, sizeof(ratio), "%.2f", f.ratio);
        snprintf(ratio_best, sizeof(ratio_best), "%.2f", f.ratio_best);
    }
    printf("  %-34s %-5s %9s %9s %9s %9s %6s %6s  %s\n", row->what, row->unit, number(f.ours, ours),
           number(f.ours_best, ours_best), bound, bound_best, ratio, ratio_best,
           target_text(row, &f, target, sizeof(target)));
}

void bench_section(const struct bench *bench, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(section, sizeof(section), fmt, args);
    va_end(args);
    if (!bench->json)
        printf("\n%s\n  %-34s %-5s %9s %9s %9s %9s %6s %6s  %s\n", section, "", "unit", "ours",
               "best", "bound", "best", "ratio", "best", "target");
}

void bench_note(const struct bench *bench, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (bench->json) {
        printf("{\"bench\": \"%s\"", bench->name);
        print_field("note", text);
        puts("}");
        return;
    }
    printf("  %s\n", text);
}

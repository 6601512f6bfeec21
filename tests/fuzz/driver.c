/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.c - runs a fuzz target without a fuzzer: each saved input of the folders in argv, then
 * seeded mutations of it. With clang -fsanitize=fuzzer the targets need no driver.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX   65536
#define N_MUTATIONS 300

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545f4914f6cdd1du >> 11) % n;
}

/* A copy of exactly this size, so that a sanitizer sees one byte too far. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (copy == NULL)
        exit(1);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t mutate(uint8_t *data, size_t size)
{
    static const char liked[] = "{}[]\":,.\\u0d8-+eEKMGiB9 \n";
    for (uint64_t n = 1 + random_below(4); n > 0; n--) {
        size_t at = (size_t)random_below(size + 1), length = size - at;
        switch (random_below(5)) {
        case 0: /* cut */
            size = at;
            break;
        case 1: /* remove some */
            if (length > 0) {
                size_t gone = 1 + (size_t)random_below(length);
                memmove(data + at, data + at + gone, length - gone);
                size -= gone;
            }
            break;
        case 2: /* repeat the rest */
            if (size + length <= INPUT_MAX) {
                memcpy(data + size, data + at, length);
                size += length;
            }
            break;
        case 3: /* another byte */
            if (length > 0)
                data[at] = (uint8_t)random_below(256);
            break;
        default: /* one that means something */
            if (size < INPUT_MAX) {
                memmove(data + at + 1, data + at, length);
                data[at] = (uint8_t)liked[random_below(sizeof(liked) - 1)];
                size++;
            }
        }
    }
    return size;
}

static void run_file(const char *path)
{
    static uint8_t original[INPUT_MAX], mutated[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t size = fread(original, 1, sizeof(original), file);
    fclose(file);
    run(original, size);
    for (int i = 0; i < N_MUTATIONS; i++) {
        memcpy(mutated, original, size);
        run(mutated, mutate(mutated, size));
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    const char *seed = getenv("TEST_SEED");
    random_state = seed ? strtoull(seed, NULL, 10) : 20240229;
    if (random_state == 0)
        random_state = 1;
    printf("seed %llu\n", (unsigned long long)random_state);
    int n_files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder == NULL) {
            perror(argv[i]);
            return 1;
        }
        char *names[1024];
        size_t n = 0;
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
            if (entry->d_name[0] != '.' && n < sizeof(names) / sizeof(names[0]))
                names[n++] = strdup(entry->d_name);
        closedir(folder);
        qsort(names, n, sizeof(names[0]), by_name); /* the same order everywhere */
        for (size_t j = 0; j < n; j++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], names[j]);
            run_file(path);
            free(names[j]);
            n_files++;
        }
    }
    printf("%d files, %d mutations of each\n", n_files, N_MUTATIONS);
    return n_files > 0 ? 0 : 1; /* an empty corpus tests nothing */
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints addresses of calls and the lines they are on; test_symbolise.c compares.
 */
#include <stdint.h>
#include <stdio.h>

extern char __executable_start[];

static int plain_line, inlined_line;

#define HERE(line) ((line) = __LINE__, here())

__attribute__((noinline)) static uintptr_t here(void)
{
    return (uintptr_t)__builtin_return_address(0);
}

static inline __attribute__((always_inline)) uintptr_t inlined(void)
{
    uintptr_t place = HERE(inlined_line);
    __asm__ volatile("" : "+r"(place));
    return place;
}

__attribute__((noinline)) static uintptr_t plain(void)
{
    uintptr_t place = HERE(plain_line);
    __asm__ volatile("" : "+r"(place));
    return place;
}

/* A name as C++ has it: Model::load(unsigned long). */
__attribute__((noinline)) uintptr_t model_load(void) __asm__("_ZN5Model4loadEm");
uintptr_t model_load(void)
{
    uintptr_t place = here();
    __asm__ volatile("" : "+r"(place));
    return place;
}

__attribute__((noinline)) static uintptr_t caller(void)
{
    uintptr_t place = inlined();
    __asm__ volatile("" : "+r"(place));
    return place;
}

int main(void)
{
    uintptr_t base = (uintptr_t)__executable_start;
    uintptr_t in_plain = plain() - base - 1, in_inlined = caller() - base - 1;
    uintptr_t in_model = model_load() - base - 1;
    printf("%llx %d %llx %d %llx\n", (unsigned long long)in_plain, plain_line,
           (unsigned long long)in_inlined, inlined_line, (unsigned long long)in_model);
    return 0;
}

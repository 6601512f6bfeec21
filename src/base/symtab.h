/* SPDX-License-Identifier: Apache-2.0
 *
 * symtab.h - the function around an address of this process, from the symbol table of the
 * file it was loaded from. Knows static functions, which the dynamic linker does not; knows no
 * lines (those are for `belay symbolize`).
 */
#ifndef BLYI_SYMTAB_H
#define BLYI_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLYI_SYMTAB_NAME 161

/* Writes the function's name, cut at BLYI_SYMTAB_NAME - 1, and how far `pc` is behind its start.
 * False: no file, no symbol table, no such function, or a file that is not what it claims to be.
 * Maps the file for the time of the call. [any] */
bool blyi_symtab_find(const void *pc, char name[BLYI_SYMTAB_NAME], uint64_t *offset);

#define BLYI_SYMTAB_MODULE 64
/* The same in another process, with the name of the file ("serve"), which is set even when no
 * function is found; "" when /proc does not tell. [any] */
bool blyi_symtab_find_in(uint32_t pid, uint64_t pc, char name[BLYI_SYMTAB_NAME], uint64_t *offset,
                         char module[BLYI_SYMTAB_MODULE]);

#endif

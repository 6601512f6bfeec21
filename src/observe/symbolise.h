/* SPDX-License-Identifier: Apache-2.0
 *
 * symbolise.h - function, file and line of sites, for a reader.
 *
 * The library depends on libc alone, so the debug information is read by a helper process,
 * `belay symbolize`: option SYMBOLIZER, else ../bin/belay beside the library. Without a helper,
 * or where it knows nothing, the dynamic symbols must do: a function and no file.
 *
 * Sent to the helper, one line an address: MODULE <tab> OFFSET <tab> BUILD-ID (hex; may be empty).
 * OFFSET is hexadecimal, an address as the module's file counts them. It answers one line each:
 * FUNCTION <tab> FILE <tab> LINE <tab> OFFSET, where what is not known is empty. OFFSET is how far,
 * in hexadecimal, the address lies behind the function's start; told when the line is not known.
 */
#ifndef BLYI_SYMBOLISE_H
#define BLYI_SYMBOLISE_H

#include <stddef.h>
#include <stdint.h>

struct blyi_source {
    char *function; /* never NULL after blyi_symbolise(); "name+0x96" without a line */
    char *file;     /* "" when unknown */
    uint32_t line;
};

/* Fills out[i] for sites[i]; free with blyi_sources_fini(). A helper that does nothing for
 * BLYI_SYMBOLISE_IDLE_MS is stopped, and any after BLYI_SYMBOLISE_MS. When host memory is short,
 * texts are constants that say so. */
#define BLYI_SYMBOLISE_IDLE_MS 5000
#define BLYI_SYMBOLISE_MS      60000
void blyi_symbolise(const uint32_t *sites, size_t n, struct blyi_source *out);
void blyi_sources_fini(struct blyi_source *sources, size_t n);

#define BLYI_SOURCE_TEXT 512
/* "function file:line", or "function" without a file. */
const char *blyi_source_text(const struct blyi_source *source, char buf[BLYI_SOURCE_TEXT]);

#endif

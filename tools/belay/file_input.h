/* SPDX-License-Identifier: Apache-2.0
 *
 * file_input.h - the bytes of a file, unpacked where it is compressed by zstd.
 */
#ifndef BELAY_FILE_INPUT_H
#define BELAY_FILE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

struct file_input {
    char *at;
    size_t length;
    bool is_mapped; /* private */
};

/* False: said why. */
bool file_input_read(const char *path, struct file_input *file);
void file_input_release(struct file_input *file);

#endif

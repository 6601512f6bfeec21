/* SPDX-License-Identifier: Apache-2.0
 *
 * cann.h - what a vendor's card needs beside backend.h.
 */
#ifndef BLYI_CANN_H
#define BLYI_CANN_H

#include "backend/backend.h"

/* A stream is about to be destroyed, and its work has ended: nothing of it is asked any more. */
void blyi_cann_end(struct blyi_backend *backend, void *stream);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_frame.h - which frame of a stack tells most of who asked, and in what words.
 */
#ifndef BLYI_INSIGHT_FRAME_H
#define BLYI_INSIGHT_FRAME_H

#include "observe/trace_reader.h"

/* The innermost line of Python, one that is not PyTorch's own before one that is. Without one, of
 * PyTorch: the node of autograd that runs, else the outermost operator. Else the innermost frame
 * that is not the allocator's own machinery; `site` where there is none. */
uint32_t blyi_frame_telling(const struct blyi_trace *trace, uint32_t site, uint32_t stack);

/* As blyi_trace_site_text, without the parameters and template arguments of C++ functions. */
const char *blyi_frame_text(const struct blyi_trace *trace, uint32_t site,
                            char buf[BLYI_TRACE_SITE_TEXT]);

#endif

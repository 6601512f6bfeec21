/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_frame.c - see insight_frame.h.
 */
#include "observe/insight_frame.h"

#include <string.h>
#include "base/compiler.h"

#define OPERATOR "at::_ops::"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends_in_py(const char *text)
{
    size_t n = strlen(text);
    return n > 3 && strcmp(text + n - 3, ".py") == 0;
}

/* PyTorch's own lines tell what, but not who: who asked for it stands further out. */
static bool is_framework(const char *source)
{
    return strstr(source, "-packages/torch/") != NULL ||
           strstr(source, "-packages/torch_npu/") != NULL;
}

/* How stacks of PyTorch begin: the unwinder and the allocator themselves. */
static bool is_machinery(const char *function)
{
    static const char *const heads[] = {"torch::unwind", "torch::CapturedTraceback",
                                        "torch::cuda::", "torch_npu::",
                                        "c10::",         "c10_npu::",
                                        "at::detail::",  "at::TensorBase at::detail::"};
    for (size_t i = 0; i < BLYI_COUNT(heads); i++)
        if (begins(function, heads[i]))
            return true;
    return false;
}

/* What the engine of autograd calls: BmmBackward0, AccumulateGrad. */
static bool is_node(const char *function)
{
    return begins(function, "torch::autograd::") && strstr(function, "::apply(") != NULL;
}

uint32_t blyi_frame_telling(const struct blyi_trace *trace, uint32_t site, uint32_t stack)
{
    struct blyi_trace_site about;
    size_t n;
    uint32_t torch = 0, node = 0, op = 0, plain = 0;
    const uint32_t *sites = blyi_trace_stack(trace, stack, &n);
    for (size_t i = 0; i < n; i++) {
        if (!blyi_trace_site(trace, sites[i], &about))
            continue;
        if (ends_in_py(about.source) && !is_framework(about.source))
            return sites[i];
        if (torch == 0 && ends_in_py(about.source))
            torch = sites[i];
        if (node == 0 && is_node(about.function))
            node = sites[i];
        if (begins(about.function, OPERATOR))
            op = sites[i];
        if (plain == 0 && !is_machinery(about.function))
            plain = sites[i];
    }
    return torch ? torch : node ? node : op ? op : plain ? plain : site;
}

/* Cuts what stands in ( ) and < > out of a C++ name; a place without a name, "(anonymous
 * namespace)", and operators keep theirs. */
static void shorten(char *text)
{
    static const char anonymous[] = "(anonymous namespace)";
    char *to = text;
    int depth = 0;
    if (strstr(text, "::") == NULL || strstr(text, "operator") != NULL)
        return;
    for (const char *at = text; *at != '\0'; at++) {
        if (depth == 0 && begins(at, anonymous)) {
            memmove(to, at, sizeof(anonymous) - 1);
            to += sizeof(anonymous) - 1;
            at += sizeof(anonymous) - 2;
        } else if (*at == '(' || *at == '<') {
            depth++;
        } else if (*at == ')' || *at == '>') {
            depth -= depth > 0;
        } else if (depth == 0) {
            *to++ = *at;
        }
    }
    *to = '\0';
}

const char *blyi_frame_text(const struct blyi_trace *trace, uint32_t site,
                            char buf[BLYI_TRACE_SITE_TEXT])
{
    struct blyi_trace_site about;
    blyi_trace_site_text(trace, site, buf);
    if (blyi_trace_site(trace, site, &about) && !ends_in_py(about.source) && about.line == 0)
        shorten(buf);
    return buf;
}

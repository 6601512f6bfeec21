/* SPDX-License-Identifier: Apache-2.0
 *
 * report_page.c - see report_page.h.
 */
#include "observe/report_page.h"

#include <string.h>
#include "base/host.h"

extern const char blyi_report_page_text[]; /* report_page.html */

#define MARK "@OBJECT@\n"

/* Nothing before the mark depends on the version of the page but its own words. */
#define BEFORE "<script type=\"application/json\" id=\"report\">\n"
#define BEHIND "</script>\n"

struct blyi_slice blyi_report_page_head(void)
{
    const char *mark = strstr(blyi_report_page_text, MARK);
    return (struct blyi_slice){blyi_report_page_text, (size_t)(mark - blyi_report_page_text)};
}

struct blyi_slice blyi_report_page_tail(void)
{
    const char *tail = strstr(blyi_report_page_text, MARK) + strlen(MARK);
    return (struct blyi_slice){tail, strlen(tail)};
}

struct blyi_slice blyi_report_page_object(struct blyi_slice page)
{
    const char *begin = memmem(page.text, page.length, BEFORE, strlen(BEFORE));
    if (begin == NULL)
        return (struct blyi_slice){"", 0};
    begin += strlen(BEFORE);
    size_t rest = page.length - (size_t)(begin - page.text);
    const char *end = memmem(begin, rest, BEHIND, strlen(BEHIND));
    return (struct blyi_slice){begin, end != NULL ? (size_t)(end - begin) : 0};
}

struct blyi_slice blyi_report_page_quote(struct blyi_slice object)
{
    static const char quoted[] = "\\u003c"; /* "<" can stand in strings alone */
    const size_t length = sizeof(quoted) - 1;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < object.length; i++)
        n += object.text[i] == '<';
    char *text = blyi_host_alloc(object.length + n * length + 1);
    for (size_t i = 0; text != NULL && i < object.length; i++) {
        if (object.text[i] != '<') {
            text[at++] = object.text[i];
            continue;
        }
        memcpy(text + at, quoted, length);
        at += length;
    }
    return (struct blyi_slice){text, at};
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * report_page.h - the report as a page for a browser: the object of a JSON report, and around it
 * what shows it (report_page.html). It needs no network and no other file.
 */
#ifndef BLYI_REPORT_PAGE_H
#define BLYI_REPORT_PAGE_H

#include "observe/report_disk.h"

/* What stands before the object, and behind it. */
struct blyi_slice blyi_report_page_head(void);
struct blyi_slice blyi_report_page_tail(void);
/* The object in a page; empty where `page` is none of these. */
struct blyi_slice blyi_report_page_object(struct blyi_slice page);
/* The same object without "<", which would end the script that it stands in; from host memory that
 * the caller frees. Text NULL: there is none. */
struct blyi_slice blyi_report_page_quote(struct blyi_slice object);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c - names and texts of status codes, and the version.
 */
#include <belay/base.h>

#define TEXT_OF(x)     #x
#define NUMBER_TEXT(x) TEXT_OF(x)
#define VERSION_TEXT                                                                               \
    NUMBER_TEXT(BLY_VERSION_MAJOR)                                                                 \
    "." NUMBER_TEXT(BLY_VERSION_MINOR) "." NUMBER_TEXT(BLY_VERSION_PATCH)

const char *bly_status_name(bly_status status)
{
    switch (status) {
#define NAME_CASE(name, value, text)                                                               \
    case BLY_##name:                                                                               \
        return #name;
        BLY_STATUS(NAME_CASE)
#undef NAME_CASE
    }
    return "E_UNKNOWN";
}

const char *bly_status_text(bly_status status)
{
    switch (status) {
#define TEXT_CASE(name, value, text)                                                               \
    case BLY_##name:                                                                               \
        return text;
        BLY_STATUS(TEXT_CASE)
#undef TEXT_CASE
    }
    return "unknown status";
}

const char *bly_version(void)
{
    return VERSION_TEXT;
}

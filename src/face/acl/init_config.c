/* SPDX-License-Identifier: Apache-2.0
 *
 * init_config.c - the configuration of aclInit. Keys of other modules (dump, profiler) are
 * theirs to judge.
 */
#include "face/acl/init_config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/json.h"
#include "base/sys.h"
#include "face/acl/check.h"

#define FILE_MAX  ((size_t)10 << 20)
#define DEPTH_MAX 10
#define INIT      BLYI_ACL_CALL_aclInit

/* X(path, smallest, largest, multiple of): whole numbers. The largest stack is that of A2/A3. */
#define NUMBERS(X)                                                                                 \
    X("StackSize.aicore_stack_size", 32 * KiB, 192 * KiB, 16 * KiB)                                \
    X("StackSize.simt_stack_size", 128, 1 << 30, 128)                                              \
    X("StackSize.simt_divergence_stack_size", 1, 1 << 30, 1)                                       \
    X("simt_printf_fifo_size", MiB, 64 * MiB, 8)                                                   \
    X("simd_printf_fifo_size_per_core", KiB, 64 * MiB, 1)

static bool parse_number(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        return false;
    *value = number;
    return true;
}

/* The whole file with a NUL behind it. */
static aclError read_file(const char *path, char **text, size_t *length)
{
    int fd = blyi_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return acl_reject(aclInit, ACL_ERROR_INVALID_FILE, "%s cannot be opened: %s", path,
                          strerror(errno));
    size_t room = 4096, used = 0;
    char *buffer = blyi_host_alloc(room);
    aclError error = ACL_SUCCESS;
    while (buffer != NULL) {
        ssize_t n = blyi_sys_read(fd, buffer + used, room - used - 1);
        if (n < 0)
            error = acl_reject(aclInit, ACL_ERROR_INVALID_FILE, "%s cannot be read: %s", path,
                               strerror(errno));
        if (n <= 0)
            break;
        used += (size_t)n;
        if (used > FILE_MAX) {
            error = acl_reject(aclInit, ACL_ERROR_INVALID_FILE_SIZE, "%s is larger than %zu bytes",
                               path, FILE_MAX);
            break;
        }
        if (room - used < 2) {
            char *larger = blyi_host_realloc(buffer, room *= 2);
            if (larger == NULL)
                blyi_host_free(buffer);
            buffer = larger;
        }
    }
    close(fd);
    if (buffer == NULL)
        return acl_reject(aclInit, ACL_ERROR_BAD_ALLOC, "the host has no memory for %s", path);
    if (error != ACL_SUCCESS) {
        blyi_host_free(buffer);
        return error;
    }
    buffer[used] = '\0';
    *text = buffer;
    *length = used;
    return ACL_SUCCESS;
}

static aclError check_numbers(const char *text)
{
    static const struct {
        const char *path;
        uint64_t min, max, multiple;
    } rows[] = {
#define NUMBER_ROW(path, min, max, multiple) {path, min, max, multiple},
        NUMBERS(NUMBER_ROW)
#undef NUMBER_ROW
    };
    char value[64];
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        uint64_t number;
        if (!blyi_json_lookup(text, rows[i].path, value, sizeof(value)))
            continue;
        if (!parse_number(value, &number) || number < rows[i].min || number > rows[i].max ||
            number % rows[i].multiple != 0)
            return acl_reject(aclInit, ACL_ERROR_INVALID_PARAM,
                              "%s is %s: a multiple of %" PRIu64 " in %" PRIu64 " .. %" PRIu64
                              " is expected",
                              rows[i].path, value, rows[i].multiple, rows[i].min, rows[i].max);
    }
    uint64_t queue;
    if (blyi_json_lookup(text, "max_opqueue_num", value, sizeof(value)) &&
        (!parse_number(value, &queue) || queue == 0))
        return acl_reject(aclInit, ACL_ERROR_INVALID_MAX_OPQUEUE_NUM_CONFIG,
                          "max_opqueue_num is %s: a number above 0 is expected", value);
    return ACL_SUCCESS;
}

static aclError read_values(struct blyi_init_config *config)
{
    char value[64];
    aclError error = check_numbers(config->text);
    if (error != ACL_SUCCESS)
        return error;
    if (blyi_json_lookup(config->text, "err_msg_mode", value, sizeof(value))) {
        if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
            return acl_reject(aclInit, ACL_ERROR_INVALID_PARAM,
                              "err_msg_mode is %s: 0 (thread) or 1 (process) is expected", value);
        config->shared_errors = value[0] == '1';
    }
    if (blyi_json_lookup(config->text, "defaultDevice.default_device", value, sizeof(value))) {
        uint64_t user;
        if (!parse_number(value, &user) || user > INT32_MAX)
            return acl_reject(aclInit, ACL_ERROR_INVALID_PARAM,
                              "defaultDevice.default_device is %s: a device id is expected", value);
        return blyi_acl_check_device(INIT, (int64_t)user, ACL_ERROR_INVALID_PARAM,
                                     &config->default_card);
    }
    return ACL_SUCCESS;
}

aclError blyi_init_config_read(const char *path, struct blyi_init_config *out)
{
    struct blyi_init_config config = {.default_card = -1};
    aclError error = ACL_SUCCESS;
    if (path != NULL) {
        error = read_file(path, &config.text, &config.length);
    } else {
        config.text = blyi_host_strdup("{}");
        config.length = 2;
        if (config.text == NULL)
            error = acl_reject(aclInit, ACL_ERROR_BAD_ALLOC, "the host has no memory");
    }
    if (error != ACL_SUCCESS)
        return error;
    bly_status status = blyi_json_check(config.text, config.length, DEPTH_MAX);
    if (status != BLY_OK) {
        char reason[256];
        size_t i = 0;
        for (const char *text = blyi_fail_text(); text[i] != '\0' && i < sizeof(reason) - 1; i++)
            reason[i] = text[i];
        reason[i] = '\0';
        error = acl_reject(aclInit,
                           status == BLY_E_HOST_MEMORY ? ACL_ERROR_BAD_ALLOC : ACL_ERROR_PARSE_FILE,
                           "%s: %s", path == NULL ? "configuration" : path, reason);
    } else {
        error = read_values(&config);
    }
    if (error != ACL_SUCCESS)
        blyi_init_config_free(&config);
    else
        *out = config;
    return error;
}

void blyi_init_config_free(struct blyi_init_config *config)
{
    blyi_host_free(config->text);
    config->text = NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool blyi_init_config_equal(const char *a, const char *b)
{
    bool in_string = false;
    for (;; a++, b++) {
        while (!in_string && is_blank(*a))
            a++;
        while (!in_string && is_blank(*b))
            b++;
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
        if (*a == '\\' && in_string && a[1] == b[1] && a[1] != '\0') {
            a++;
            b++;
        } else if (*a == '"') {
            in_string = !in_string;
        }
    }
}

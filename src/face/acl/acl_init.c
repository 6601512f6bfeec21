/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_init.c - aclInit and aclFinalize: how often, with which configuration, and the functions
 * that modules run then.
 *
 *   aclInit        count 0 → 1: 0        count n → n + 1: 100002, which callers ignore
 *   aclFinalize    count → 0: 0, also when it never was above 0; again: 100037
 *   ...Reference   count n → n - 1, the last one finalises; at 0: 100037
 *
 * `init_mutex` is recursive and held while user callbacks run, as AscendCL documents: a
 * callback may call aclInit, another thread waits. It is the outermost lock of the process.
 */
#include <pthread.h>
#include <string.h>

#include "base/host.h"
#include "face/acl/acl_error.h"
#include "face/acl/init_config.h"
#include "face/acl/message.h"
#include "face/acl/model.h"
#include "npu/context.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"

#define CALLBACKS_MAX 64

struct callback {
    aclRegisterCallbackType type;
    union {
        aclInitCallbackFunc init;
        aclFinalizeCallbackFunc finalize;
    } fn;
    void *user_data;
};

struct callbacks {
    struct callback rows[CALLBACKS_MAX];
    size_t count;
};

static pthread_mutex_t init_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static uint64_t init_count;
static bool is_finalised;  /* by aclFinalize, since the last aclInit */
static char *first_config; /* NULL: no aclInit with a file yet; kept for ever */
static struct callbacks on_init, on_finalise;

static const char *current_config(void)
{
    return first_config != NULL ? first_config : "{}";
}

/* Each function registered so far once; a function may register more, which run later. */
static aclError run_init_callbacks(void)
{
    struct callbacks copy = on_init;
    for (size_t i = 0; i < copy.count; i++) {
        aclError error = copy.rows[i].fn.init(current_config(), strlen(current_config()),
                                              copy.rows[i].user_data);
        if (error != ACL_SUCCESS)
            return acl_reject(aclInit, error, "the init callback of module type %d returned %d",
                              (int)copy.rows[i].type, error);
    }
    return ACL_SUCCESS;
}

/* The first configuration from a file stands for the life of the process. */
static aclError take_config(const char *path, struct blyi_init_config *config)
{
    if (path == NULL)
        return ACL_SUCCESS;
    if (first_config == NULL) {
        first_config = config->text;
        config->text = NULL;
        return ACL_SUCCESS;
    }
    if (!blyi_init_config_equal(first_config, config->text))
        return acl_reject(aclInit, ACL_ERROR_INVALID_PARAM,
                          "%s differs from the configuration of the first aclInit", path);
    return ACL_SUCCESS;
}

static aclError init_locked(const char *path)
{
    struct blyi_init_config config;
    aclError error = blyi_init_config_read(path, &config);
    if (error != ACL_SUCCESS)
        return error;
    error = take_config(path, &config);
    blyi_init_config_free(&config);
    if (error != ACL_SUCCESS)
        return error;
    if (init_count > 0) {
        init_count++;
        return acl_reject(aclInit, ACL_ERROR_REPEAT_INITIALIZE,
                          "already initialised; this is call %llu", (unsigned long long)init_count);
    }
    if (path != NULL) {
        blyi_message_set_shared(config.shared_errors);
        if (config.default_card >= 0)
            blyi_device_set_default(config.default_card);
    }
    init_count = 1;
    error = run_init_callbacks();
    if (error != ACL_SUCCESS)
        init_count = 0;
    else
        is_finalised = false;
    return error;
}

aclError bly_acl_aclInit(const char *configPath)
{
    blyi_acl_enter();
    const struct blyi_model *model;
    bly_status status = blyi_runtime_enter();
    if (status == BLY_OK)
        status = blyi_acl_model(&model); /* the chip's name must be known */
    if (status != BLY_OK)
        return acl_result(aclInit, status);
    pthread_mutex_lock(&init_mutex);
    aclError error = init_locked(configPath);
    pthread_mutex_unlock(&init_mutex);
    return error;
}

/* Runs the callbacks and takes everything down; init_mutex is held. */
static aclError finalise_locked(enum blyi_acl_call call)
{
    aclError first_error = ACL_SUCCESS;
    struct callbacks copy = on_finalise;
    for (size_t i = 0; i < copy.count; i++) {
        aclError error = copy.rows[i].fn.finalize(copy.rows[i].user_data);
        if (error != ACL_SUCCESS && first_error == ACL_SUCCESS)
            first_error =
                blyi_acl_reject(call, error, "the finalise callback of module type %d returned %d",
                                (int)copy.rows[i].type, error);
    }
    init_count = 0;
    is_finalised = true;
    blyi_runtime_finalise();
    return first_error;
}

aclError bly_acl_aclFinalize(void)
{
    bly_status status = blyi_runtime_enter();
    if (status == BLY_OK)
        status = blyi_snapshot_pass(); /* not with init_mutex held */
    if (status != BLY_OK)
        return acl_result(aclFinalize, status);
    pthread_mutex_lock(&init_mutex);
    aclError error = is_finalised
                         ? acl_reject(aclFinalize, ACL_ERROR_REPEAT_FINALIZE, "already finalised")
                         : finalise_locked(BLYI_ACL_CALL_aclFinalize);
    pthread_mutex_unlock(&init_mutex);
    return error;
}

aclError bly_acl_aclFinalizeReference(uint64_t *refCount)
{
    bly_status status = blyi_runtime_enter();
    if (status == BLY_OK)
        status = blyi_snapshot_pass(); /* not with init_mutex held */
    if (status != BLY_OK)
        return acl_result(aclFinalizeReference, status);
    aclError error = ACL_SUCCESS;
    pthread_mutex_lock(&init_mutex);
    if (init_count == 0)
        error = acl_reject(aclFinalizeReference, ACL_ERROR_REPEAT_FINALIZE, "no aclInit is left");
    else if (init_count > 1)
        init_count--;
    else
        error = finalise_locked(BLYI_ACL_CALL_aclFinalizeReference);
    if (refCount != NULL && error == ACL_SUCCESS)
        *refCount = init_count;
    pthread_mutex_unlock(&init_mutex);
    return error;
}

static aclError check_type(enum blyi_acl_call call, aclRegisterCallbackType type)
{
    if (((int)type < ACL_REG_TYPE_ACL_MODEL || (int)type > ACL_REG_TYPE_ACL_RETR) &&
        type != ACL_REG_TYPE_OTHER)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "type %d is not a module type",
                               (int)type);
    return ACL_SUCCESS;
}

static aclError add_callback(enum blyi_acl_call call, struct callbacks *list,
                             const struct callback *callback)
{
    aclError error = check_type(call, callback->type);
    if (error == ACL_SUCCESS && list->count == CALLBACKS_MAX)
        error = blyi_acl_reject(call, ACL_ERROR_STORAGE_OVER_LIMIT, "%d callbacks are registered",
                                CALLBACKS_MAX);
    if (error == ACL_SUCCESS)
        list->rows[list->count++] = *callback;
    return error;
}

/* Takes the first row equal in type and function; the order of the others stays. */
static aclError remove_callback(enum blyi_acl_call call, struct callbacks *list,
                                const struct callback *callback)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].type == callback->type &&
            memcmp(&list->rows[i].fn, &callback->fn, sizeof(callback->fn)) == 0) {
            list->count--;
            memmove(&list->rows[i], &list->rows[i + 1], (list->count - i) * sizeof(list->rows[0]));
            return ACL_SUCCESS;
        }
    }
    return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                           "the function is not registered for module type %d",
                           (int)callback->type);
}

aclError bly_acl_aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc,
                                         void *userData)
{
    if (cbFunc == NULL)
        return acl_null(aclInitCallbackRegister, "cbFunc");
    struct callback callback = {.type = type, .fn.init = cbFunc, .user_data = userData};
    pthread_mutex_lock(&init_mutex);
    aclError error = add_callback(BLYI_ACL_CALL_aclInitCallbackRegister, &on_init, &callback);
    if (error == ACL_SUCCESS && init_count > 0) { /* the module came late */
        error = cbFunc(current_config(), strlen(current_config()), userData);
        if (error != ACL_SUCCESS)
            error =
                acl_reject(aclInitCallbackRegister, error, "the init callback returned %d", error);
    }
    pthread_mutex_unlock(&init_mutex);
    return error;
}

aclError bly_acl_aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc)
{
    if (cbFunc == NULL)
        return acl_null(aclInitCallbackUnRegister, "cbFunc");
    struct callback callback = {.type = type, .fn.init = cbFunc};
    pthread_mutex_lock(&init_mutex);
    aclError error = remove_callback(BLYI_ACL_CALL_aclInitCallbackUnRegister, &on_init, &callback);
    pthread_mutex_unlock(&init_mutex);
    return error;
}

aclError bly_acl_aclFinalizeCallbackRegister(aclRegisterCallbackType type,
                                             aclFinalizeCallbackFunc cbFunc, void *userData)
{
    if (cbFunc == NULL)
        return acl_null(aclFinalizeCallbackRegister, "cbFunc");
    struct callback callback = {.type = type, .fn.finalize = cbFunc, .user_data = userData};
    pthread_mutex_lock(&init_mutex);
    aclError error =
        add_callback(BLYI_ACL_CALL_aclFinalizeCallbackRegister, &on_finalise, &callback);
    pthread_mutex_unlock(&init_mutex);
    return error;
}

aclError bly_acl_aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                               aclFinalizeCallbackFunc cbFunc)
{
    if (cbFunc == NULL)
        return acl_null(aclFinalizeCallbackUnRegister, "cbFunc");
    struct callback callback = {.type = type, .fn.finalize = cbFunc};
    pthread_mutex_lock(&init_mutex);
    aclError error =
        remove_callback(BLYI_ACL_CALL_aclFinalizeCallbackUnRegister, &on_finalise, &callback);
    pthread_mutex_unlock(&init_mutex);
    return error;
}

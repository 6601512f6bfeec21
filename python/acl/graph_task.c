/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_task.c - parameters of a graph's tasks: a dict with "type" and the one key of C's union
 * that the type chooses. What ri_task_get_params() returns, ri_task_set_params() takes.
 */
#include "acl_module.h"

#define FIELD(record, member, kind)                                                                \
    {                                                                                              \
#member, offsetof(record, member), kind, 0, NULL                                           \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, 0, 0, 0, NULL                                                                        \
    }

/* cfg apart: it is a list. */
static const struct blyi_py_field kernel_fields[] = {
    FIELD(aclmdlRIKernelTaskParams, funcHandle, 'p'),
    FIELD(aclmdlRIKernelTaskParams, args, 'p'),
    FIELD(aclmdlRIKernelTaskParams, isHostArgs, 'I'),
    FIELD(aclmdlRIKernelTaskParams, argsSize, 'u'),
    FIELD(aclmdlRIKernelTaskParams, numBlocks, 'I'),
    END,
};
static const struct blyi_py_field record_fields[] = {
    FIELD(aclmdlRIEventRecordTaskParams, event, 'p'),
    FIELD(aclmdlRIEventRecordTaskParams, eventFlag, 'I'),
    FIELD(aclmdlRIEventRecordTaskParams, recordFlag, 'I'),
    END,
};
static const struct blyi_py_field wait_fields[] = {
    FIELD(aclmdlRIEventWaitTaskParams, event, 'p'),
    FIELD(aclmdlRIEventWaitTaskParams, eventFlag, 'I'),
    FIELD(aclmdlRIEventWaitTaskParams, waitFlag, 'I'),
    END,
};
static const struct blyi_py_field reset_fields[] = {
    FIELD(aclmdlRIEventResetTaskParams, event, 'p'),
    FIELD(aclmdlRIEventResetTaskParams, eventFlag, 'I'),
    FIELD(aclmdlRIEventResetTaskParams, resetFlag, 'I'),
    END,
};
static const struct blyi_py_field write_fields[] = {
    FIELD(aclmdlRIValueWriteTaskParams, devAddr, 'p'),
    FIELD(aclmdlRIValueWriteTaskParams, value, 'u'),
    END,
};
static const struct blyi_py_field value_wait_fields[] = {
    FIELD(aclmdlRIValueWaitTaskParams, devAddr, 'p'),
    FIELD(aclmdlRIValueWaitTaskParams, value, 'u'),
    FIELD(aclmdlRIValueWaitTaskParams, flag, 'I'),
    END,
};

#define RECORD(name, fields)                                                                       \
    {                                                                                              \
#name, fields, sizeof(name)                                                                \
    }
static const struct blyi_py_record kernel_params = RECORD(aclmdlRIKernelTaskParams, kernel_fields);
static const struct blyi_py_record record_params =
    RECORD(aclmdlRIEventRecordTaskParams, record_fields);
static const struct blyi_py_record wait_params = RECORD(aclmdlRIEventWaitTaskParams, wait_fields);
static const struct blyi_py_record reset_params =
    RECORD(aclmdlRIEventResetTaskParams, reset_fields);
static const struct blyi_py_record write_params =
    RECORD(aclmdlRIValueWriteTaskParams, write_fields);
static const struct blyi_py_record value_wait_params =
    RECORD(aclmdlRIValueWaitTaskParams, value_wait_fields);

/* The member of the union that goes with a type. */
static const struct member {
    const char *key;
    const struct blyi_py_record *record;
} members[] = {
    [ACL_MODEL_RI_TASK_DEFAULT] = {NULL, NULL},
    [ACL_MODEL_RI_TASK_KERNEL] = {"kernelTaskParams", &kernel_params},
    [ACL_MODEL_RI_TASK_EVENT_RECORD] = {"eventRecordTaskParams", &record_params},
    [ACL_MODEL_RI_TASK_EVENT_WAIT] = {"eventWaitTaskParams", &wait_params},
    [ACL_MODEL_RI_TASK_EVENT_RESET] = {"eventResetTaskParams", &reset_params},
    [ACL_MODEL_RI_TASK_VALUE_WRITE] = {"valueWriteTaskParams", &write_params},
    [ACL_MODEL_RI_TASK_VALUE_WAIT] = {"valueWaitTaskParams", &value_wait_params},
};

static const struct member *member_of(aclmdlRITaskType type)
{
    bool known = (int)type > 0 && (size_t)type < sizeof(members) / sizeof(members[0]);
    return known ? &members[type] : NULL;
}

#define COMMON_FIELDS                                                                              \
    FIELD(aclmdlRITaskParams, type, 'i'), FIELD(aclmdlRITaskParams, taskGrp, 'p'),                 \
        FIELD(aclmdlRITaskParams, opInfoPtr, 'p'), FIELD(aclmdlRITaskParams, opInfoSize, 'u')

PyObject *blyi_py_aclmdlRITaskGetParams(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {"acl.mdl.ri_task_get_params", "p", {"task"}, 0};
    static const struct blyi_py_field fields[] = {COMMON_FIELDS, END};
    static const struct blyi_py_record common = {"aclmdlRITaskParams", fields,
                                                 sizeof(aclmdlRITaskParams)};
    struct blyi_py_call call;
    aclmdlRITaskParams params = {0};
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclmdlRITaskGetParams((aclmdlRITask)(uintptr_t)call.v[0].u, &params);
    BLYI_PY_CALL_END
    if (ret != ACL_SUCCESS)
        return Py_BuildValue("({}i)", ret);
    const struct member *member = member_of(params.type);
    PyObject *dict = blyi_py_record_out(&common, &params), *part = NULL;
    if (dict != NULL && member != NULL) {
        part = blyi_py_record_out(member->record, params.rsv2);
        if (part == NULL || PyDict_SetItemString(dict, member->key, part) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(part);
    }
    return Py_BuildValue("(Ni)", dict, ret);
}

/* The kernel's dict without cfg, and that as the list that it is. */
static PyObject *without_cfg(const struct blyi_py_call *call, PyObject *dict,
                             aclrtLaunchKernelCfg *cfg)
{
    PyObject *list = PyDict_GetItemString(dict, "cfg"), *rest = PyDict_Copy(dict);
    struct blyi_py_call inner = *call;
    inner.v[1].o = list;
    if (rest == NULL || list == NULL)
        return rest;
    Py_INCREF(list); /* __index__ of an item may change the dict */
    bool done = list == Py_None || blyi_py_launch_config_in(&inner, 1, cfg);
    Py_DECREF(list);
    if (!done || PyDict_DelItemString(rest, "cfg") != 0)
        Py_CLEAR(rest);
    return rest;
}

/* The runtime copies arguments of the host. */
static bool check_args(const struct blyi_py_call *call, const aclmdlRIKernelTaskParams *params)
{
    struct blyi_py_call inner = *call;
    aclrtPtrAttributes attributes = {0};
    bool on_card = params->args != NULL &&
                   aclrtPointerGetAttributes(params->args, &attributes) == ACL_SUCCESS &&
                   attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
    inner.v[1].u = (uintptr_t)params->args;
    return (on_card && params->isHostArgs == 0) || blyi_py_reach(&inner, 1, params->argsSize);
}

static bool kernel_in(const struct blyi_py_call *call, PyObject *dict,
                      aclmdlRIKernelTaskParams *params, aclrtLaunchKernelCfg *cfg)
{
    if (!PyDict_Check(dict))
        return blyi_py_wrong(call, 1, "has \"kernelTaskParams\" that is no dict: %R", dict);
    PyObject *rest = without_cfg(call, dict, cfg);
    bool done = rest != NULL && blyi_py_dict_in(call, 1, rest, &kernel_params, params) &&
                check_args(call, params);
    Py_XDECREF(rest);
    params->cfg = cfg->numAttrs > 0 ? cfg : NULL;
    return done;
}

/* Takes the member of the type out of a copy of the dict; the rest is common to all. */
static bool params_in(const struct blyi_py_call *call, aclmdlRITaskParams *params,
                      aclrtLaunchKernelCfg *cfg)
{
    static const struct blyi_py_field fields[] = {COMMON_FIELDS, END};
    static const struct blyi_py_record common = {"aclmdlRITaskParams", fields,
                                                 sizeof(aclmdlRITaskParams)};
    uint64_t type = 0;
    PyObject *dict = call->v[1].o;
    if (!PyDict_Check(dict))
        return blyi_py_wrong(call, 1, "is not a dict: %R", dict);
    PyObject *number = PyDict_GetItemString(dict, "type");
    const char *wrong = number != NULL ? blyi_py_number(number, 'i', &type) : "is not there";
    if (wrong != NULL)
        return blyi_py_wrong(call, 1, "[\"type\"] %s: %R", wrong, dict);
    const struct member *member = member_of((aclmdlRITaskType)(int32_t)type);
    PyObject *rest = PyDict_Copy(dict), *part = NULL;
    bool done = rest != NULL;
    if (done && member != NULL && (part = PyDict_GetItemString(rest, member->key)) != NULL) {
        Py_INCREF(part);
        done = PyDict_DelItemString(rest, member->key) == 0;
    }
    done = done && blyi_py_dict_in(call, 1, rest, &common, params);
    if (done && part != NULL)
        done = member->record == &kernel_params
                   ? kernel_in(call, part, &params->kernelTaskParams, cfg)
                   : blyi_py_dict_in(call, 1, part, member->record, params->rsv2);
    Py_XDECREF(rest);
    Py_XDECREF(part);
    return done;
}

PyObject *blyi_py_aclmdlRITaskSetParams(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.mdl.ri_task_set_params", "po", {"task", "params"}, 0};
    struct blyi_py_call call;
    aclmdlRITaskParams params = {0};
    aclrtLaunchKernelCfg cfg = {0};
    aclError ret = ACL_SUCCESS;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args))
        return NULL;
    bool done = params_in(&call, &params, &cfg);
    if (done) {
        BLYI_PY_CALL_BEGIN
        ret = aclmdlRITaskSetParams((aclmdlRITask)(uintptr_t)call.v[0].u, &params);
        BLYI_PY_CALL_END
    }
    PyMem_Free(cfg.attrs);
    return done ? PyLong_FromLong(ret) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * random.c - random numbers: C's structs as dicts, the union of their distributions as the dict
 * with the one key that is meant.
 */
#include "acl_module.h"

#define FIELD(record, member, kind, count, inner)                                                  \
    {                                                                                              \
#member, offsetof(record, member), kind, count, inner                                      \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, 0, 0, 0, NULL                                                                        \
    }

static const struct blyi_py_field param_fields[] = {
    FIELD(aclrtRandomParaInfo, isAddr, 'B', 0, NULL),
    FIELD(aclrtRandomParaInfo, valueOrAddr, 'B', 8, NULL),
    FIELD(aclrtRandomParaInfo, size, 'B', 0, NULL),
    END,
};
static const struct blyi_py_record param = {"aclrtRandomParaInfo", param_fields,
                                            sizeof(aclrtRandomParaInfo)};

static const struct blyi_py_field dropout_fields[] = {
    FIELD(aclrtDropoutBitmaskInfo, dropoutRation, 'r', 0, &param),
    END,
};
static const struct blyi_py_field uniform_fields[] = {
    FIELD(aclrtUniformDisInfo, min, 'r', 0, &param),
    FIELD(aclrtUniformDisInfo, max, 'r', 0, &param),
    END,
};
static const struct blyi_py_field normal_fields[] = {
    FIELD(aclrtNormalDisInfo, mean, 'r', 0, &param),
    FIELD(aclrtNormalDisInfo, stddev, 'r', 0, &param),
    END,
};

/* Members of the union. */
static const struct {
    const char *key;
    struct blyi_py_record record;
} distributions[] = {
    {"dropoutBitmaskInfo",
     {"aclrtDropoutBitmaskInfo", dropout_fields, sizeof(aclrtDropoutBitmaskInfo)}},
    {"uniformDisInfo", {"aclrtUniformDisInfo", uniform_fields, sizeof(aclrtUniformDisInfo)}},
    {"normalDisInfo", {"aclrtNormalDisInfo", normal_fields, sizeof(aclrtNormalDisInfo)}},
};

/* All but the function, which has the union. */
static const struct blyi_py_field task_fields[] = {
    FIELD(aclrtRandomNumTaskInfo, dataType, 'i', 0, NULL),
    FIELD(aclrtRandomNumTaskInfo, randomParaAddr, 'p', 0, NULL),
    FIELD(aclrtRandomNumTaskInfo, randomResultAddr, 'p', 0, NULL),
    FIELD(aclrtRandomNumTaskInfo, randomCounterAddr, 'p', 0, NULL),
    FIELD(aclrtRandomNumTaskInfo, randomSeed, 'r', 0, &param),
    FIELD(aclrtRandomNumTaskInfo, randomNum, 'r', 0, &param),
    END,
};
static const struct blyi_py_record task = {"aclrtRandomNumTaskInfo", task_fields,
                                           sizeof(aclrtRandomNumTaskInfo)};

static bool distribution_in(const struct blyi_py_call *call, PyObject *dict,
                            aclrtRandomNumFuncParaInfo *function)
{
    if (PyDict_Check(dict) && PyDict_Size(dict) == 1)
        for (size_t i = 0; i < sizeof(distributions) / sizeof(distributions[0]); i++) {
            PyObject *part = PyDict_GetItemString(dict, distributions[i].key);
            if (part == NULL)
                continue;
            Py_INCREF(part); /* __index__ of a member may change the dict */
            bool done =
                blyi_py_dict_in(call, 0, part, &distributions[i].record, &function->paramInfo);
            Py_DECREF(part);
            return done;
        }
    return blyi_py_wrong(call, 0,
                         "[\"paramInfo\"] is not a dict with one key, of dropoutBitmaskInfo, "
                         "uniformDisInfo and normalDisInfo: %R",
                         dict);
}

static bool function_in(const struct blyi_py_call *call, PyObject *dict,
                        aclrtRandomNumFuncParaInfo *function)
{
    uint64_t type = 0;
    if (!PyDict_Check(dict) || PyDict_Size(dict) != 2)
        return blyi_py_wrong(call, 0,
                             "[\"randomNumFuncParaInfo\"] is not a dict with funcType "
                             "and paramInfo: %R",
                             dict);
    PyObject *number = PyDict_GetItemString(dict, "funcType");
    PyObject *info = PyDict_GetItemString(dict, "paramInfo");
    if (number == NULL || info == NULL)
        return blyi_py_wrong(call, 0, "[\"randomNumFuncParaInfo\"] lacks funcType or paramInfo: %R",
                             dict);
    Py_INCREF(info);
    const char *wrong = blyi_py_number(number, 'i', &type);
    function->funcType = (aclrtRandomNumFuncType)(int32_t)type;
    bool done = wrong == NULL || blyi_py_wrong(call, 0, "[\"funcType\"] %s: %R", wrong, dict);
    done = done && distribution_in(call, info, function);
    Py_DECREF(info);
    return done;
}

static bool task_in(const struct blyi_py_call *call, aclrtRandomNumTaskInfo *info)
{
    static const char key[] = "randomNumFuncParaInfo";
    PyObject *dict = call->v[0].o;
    if (!PyDict_Check(dict))
        return blyi_py_wrong(call, 0, "is not a dict (%s): %R", task.name, dict);
    PyObject *function = PyDict_GetItemString(dict, key);
    if (function == NULL)
        return blyi_py_wrong(call, 0, "has no key \"%s\"", key);
    Py_INCREF(function);
    PyObject *rest = PyDict_Copy(dict);
    bool done = rest != NULL && PyDict_DelItemString(rest, key) == 0 &&
                function_in(call, function, &info->randomNumFuncParaInfo) &&
                blyi_py_dict_in(call, 0, rest, &task, info);
    Py_XDECREF(rest);
    Py_DECREF(function);
    return done;
}

PyObject *blyi_py_aclrtRandomNumAsync(PyObject *self, PyObject *args)
{
    static const struct blyi_py_spec spec = {
        "acl.rt.random_num_async", "opp", {"task_info", "stream", "reserve"}, 0};
    struct blyi_py_call call;
    aclrtRandomNumTaskInfo info = {0};
    aclError ret;
    (void)self;
    if (!blyi_py_begin(&call, &spec, args) || !task_in(&call, &info))
        return NULL;
    BLYI_PY_CALL_BEGIN
    ret = aclrtRandomNumAsync(&info, (aclrtStream)(uintptr_t)call.v[1].u,
                              (void *)(uintptr_t)call.v[2].u);
    BLYI_PY_CALL_END
    return PyLong_FromLong(ret);
}

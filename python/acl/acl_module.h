/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_module.h - what the files of the Python module acl share.
 *
 * A method parses its arguments into a struct blyi_py_call, calls AscendCL without the
 * interpreter's lock, and builds a tuple of results that ends with the code. Methods that follow
 * from a C signature are generated (scripts/gen_pyacl.py); the others are in this folder.
 *
 * Every function here wants the interpreter's lock, but for those marked [any]. Those that return
 * bool or PyObject * have set an exception when they return false or NULL.
 */
#ifndef BLYI_PY_ACL_MODULE_H
#define BLYI_PY_ACL_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000 /* 3.8 and later, one binary for all */
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <acl/acl.h>
#include <acl/acl_rt_memory_soma.h>
#include <acl/acl_tdt.h>
#include <acl/acl_tdt_queue.h>
#include <belay/frame.h>

#define BLYI_PY_ARGS_MAX 10
#define BLYI_PY_TEXT_MAX 1024 /* longest buffer for a text that a call returns */

/* ---- arguments (args.c) */

/* Kinds, one letter each:
 *   i int32_t and enums   I uint32_t   l int64_t   u uint64_t   H uint16_t   B uint8_t
 *   N uint32_t, and a negative number is refused
 *   p address or handle   f float      s text      S text or None
 *   o any object          c callable   C callable or None
 * A negative number for an unsigned kind is its two's complement, as in pyACL. */
struct blyi_py_spec {
    const char *function; /* as in messages: acl.rt.malloc */
    const char *kinds;
    const char *names[BLYI_PY_ARGS_MAX];
    int optional; /* how many of the last may be left out; they are NULL */
};

union blyi_py_value {
    int64_t i;
    uint64_t u;
    double f;
    const char *s;
    PyObject *o; /* borrowed */
};

struct blyi_py_call {
    const struct blyi_py_spec *spec;
    union blyi_py_value v[BLYI_PY_ARGS_MAX];
    PyObject *held[BLYI_PY_ARGS_MAX]; /* what the texts lie in */
};

/* TypeError: number, type or range of an argument. After true, blyi_py_end() must follow. */
bool blyi_py_begin(struct blyi_py_call *call, const struct blyi_py_spec *spec, PyObject *args);
void blyi_py_end(struct blyi_py_call *call);
/* blyi_py_end(), and NULL. */
PyObject *blyi_py_fail(struct blyi_py_call *call);

/* "acl.rt.malloc: argument 1 (size) " + the rest; a format of PyErr_Format. */
bool blyi_py_wrong(const struct blyi_py_call *call, int index, const char *format, ...);
/* A number of kind `kind`, as its bits, sign-extended for signed kinds. Does not set an exception
 * but returns what is wrong with it, or NULL. */
const char *blyi_py_number(PyObject *object, char kind, uint64_t *bits);
/* The length of a buffer for a text: ValueError when it is BLYI_PY_TEXT_MAX or more. */
bool blyi_py_text_length(const struct blyi_py_call *call, int index);
/* A new str; None for NULL. */
PyObject *blyi_py_text(const char *text);

/* ---- the way out (frame.c) */

#define BLYI_PY_FRAMES 128

struct blyi_py_scope {
    PyThreadState *state;
    const bly_frames *outer;
    bly_frames frames;
    uint32_t lines[BLYI_PY_FRAMES];
};
/* Remembers the lines of Python that the thread stands in, for Belay; then gives the lock up. */
void blyi_py_scope_begin(struct blyi_py_scope *scope);
void blyi_py_scope_end(struct blyi_py_scope *scope);
/* Around every call that may wait or that Belay tells of. */
#define BLYI_PY_CALL_BEGIN                                                                         \
    {                                                                                              \
        struct blyi_py_scope scope_;                                                               \
        blyi_py_scope_begin(&scope_);
#define BLYI_PY_CALL_END                                                                           \
    blyi_py_scope_end(&scope_);                                                                    \
    }
void blyi_py_frames_begin(void); /* once, at import */

/* ---- dictionaries for structs (record.c) */

struct blyi_py_record;
struct blyi_py_field {
    const char *key;
    size_t offset;
    char kind;    /* of the list above; t: text in an array, r: another record */
    size_t count; /* of an array; 0: no array */
    const struct blyi_py_record *record;
};
struct blyi_py_record {
    const char *name;
    const struct blyi_py_field *fields; /* ends with a NULL key */
    size_t size;
};

/* Argument `index` is a dict: its keys into *record, which the caller has zeroed. Keys may be
 * absent, but for records in records; others are refused. TypeError. */
bool blyi_py_record_in(const struct blyi_py_call *call, int index,
                       const struct blyi_py_record *description, void *record);
/* The same for an object that is not an argument itself. */
bool blyi_py_dict_in(const struct blyi_py_call *call, int index, PyObject *dict,
                     const struct blyi_py_record *description, void *record);
PyObject *blyi_py_record_out(const struct blyi_py_record *description, const void *record);
/* Argument `index` is a list or tuple of dicts; *n records, *records is to be freed with
 * PyMem_Free(), NULL when there are none. */
bool blyi_py_records_in(const struct blyi_py_call *call, int index,
                        const struct blyi_py_record *description, void **records, size_t *n);
PyObject *blyi_py_records_out(const struct blyi_py_record *description, const void *records,
                              size_t n);
/* A list of addresses. */
PyObject *blyi_py_handles_out(void *const handles[], size_t n);
/* Argument `index` is a list or tuple of numbers of kind u, l, p, I or i; freed likewise. */
bool blyi_py_numbers_in(const struct blyi_py_call *call, int index, char kind, void **numbers,
                        size_t *n);

extern const struct blyi_py_record blyi_py_aclrtMemLocation, blyi_py_aclrtMemUceInfo,
    blyi_py_aclrtMemAccessDesc, blyi_py_aclrtMemcpyBatchAttr, blyi_py_aclrtPlaceHolderInfo,
    blyi_py_aclrtMemUsageInfo, blyi_py_aclrtPhysicalMemProp, blyi_py_aclrtCntNotifyRecordInfo,
    blyi_py_aclrtCntNotifyWaitInfo, blyi_py_aclrtPtrAttributes, blyi_py_aclrtUtilizationInfo,
    blyi_py_aclrtUuid, blyi_py_aclCANNPackageVersion, blyi_py_aclrtMemPoolProps;

/* Argument `index` is the options of a launch (kernel.c); cfg->attrs is freed likewise. */
bool blyi_py_launch_config_in(const struct blyi_py_call *call, int index,
                              aclrtLaunchKernelCfg *cfg);

/* ---- host memory by address (reach.c) */

/* Whether this process can read n bytes at argument `index`; ValueError. NULL and n == 0 are left
 * to the runtime. */
bool blyi_py_reach(const struct blyi_py_call *call, int index, uint64_t n);
/* Copies n bytes into `to`, or says what is wrong with the address. */
bool blyi_py_read(const struct blyi_py_call *call, int index, void *to, uint64_t n);

/* ---- Python functions that the runtime calls (callback.c) */

struct blyi_py_closure {
    PyObject *fn, *data;
    bool kept, ran; /* callback.c */
};

struct blyi_py_closure *blyi_py_closure_new(PyObject *fn, PyObject *data);
void blyi_py_closure_free(struct blyi_py_closure *closure);
/* Takes the interpreter's lock for a thread of the runtime. False: the interpreter is ending, and
 * the callback is not run. Both [any]. */
bool blyi_py_enter(PyGILState_STATE *state);
void blyi_py_leave(PyGILState_STATE state);
/* What a callback returned: a failure is told through sys.unraisablehook. Takes `result`. */
void blyi_py_finish(PyObject *fn, PyObject *result);
/* From now on callbacks wait for the interpreter's end. Called once, at import. */
bool blyi_py_callbacks_begin(void);

/* ---- tables */

struct blyi_py_constant {
    const char *name;
    long long value;
};
struct blyi_py_text_constant {
    const char *name, *value;
};
extern const struct blyi_py_constant blyi_py_constants[];  /* generated */
extern const struct blyi_py_text_constant blyi_py_texts[]; /* generated */
extern PyMethodDef blyi_py_methods_acl[], blyi_py_methods_acl_mdl[], blyi_py_methods_acl_rt[],
    blyi_py_methods_acl_tdt[]; /* generated */

/* Methods by hand, by the C function they call. */
#define BLYI_PY_OWN(X)                                                                             \
    X(aclAppLog)                                                                                   \
    X(aclGetCannAttributeList)                                                                     \
    X(aclInit)                                                                                     \
    X(acllogRecord)                                                                                \
    X(aclmdlRIAddCondTask)                                                                         \
    X(aclmdlRICaptureThreadExchangeMode)                                                           \
    X(aclmdlRIDestroyRegisterCallback)                                                             \
    X(aclmdlRIDestroyUnregisterCallback)                                                           \
    X(aclmdlRIGetStreams)                                                                          \
    X(aclmdlRIGetTasksByStream)                                                                    \
    X(aclmdlRITaskGetParams)                                                                       \
    X(aclmdlRITaskSetParams)                                                                       \
    X(aclrtAllocatorSetAllocAdviseFuncToDesc)                                                      \
    X(aclrtAllocatorSetAllocFuncToDesc)                                                            \
    X(aclrtAllocatorSetFreeFuncToDesc)                                                             \
    X(aclrtAllocatorSetGetAddrFromBlockFuncToDesc)                                                 \
    X(aclrtBinaryLoadFromData)                                                                     \
    X(aclrtBinaryLoadFromFile)                                                                     \
    X(aclrtCheckMemType)                                                                           \
    X(aclrtCreateLabelList)                                                                        \
    X(aclrtExceptionInfoCallbackRegister)                                                          \
    X(aclrtExceptionInfoCallbackUnregister)                                                        \
    X(aclrtGetGroupInfoDetail)                                                                     \
    X(aclrtGetMemUceInfo)                                                                          \
    X(aclrtGetMemUsageInfo)                                                                        \
    X(aclrtGetPrimaryCtxState)                                                                     \
    X(aclrtGetStreamAttribute)                                                                     \
    X(aclrtLaunchCallback)                                                                         \
    X(aclrtLaunchHostFunc)                                                                         \
    X(aclrtLaunchKernelV2)                                                                         \
    X(aclrtLaunchKernelWithArgsArray)                                                              \
    X(aclrtLaunchKernelWithConfig)                                                                 \
    X(aclrtLaunchKernelWithHostArgs)                                                               \
    X(aclrtMallocForTaskScheduler)                                                                 \
    X(aclrtMallocHostWithCfg)                                                                      \
    X(aclrtMallocWithCfg)                                                                          \
    X(aclrtMemSetAccess)                                                                           \
    X(aclrtMemUceRepair)                                                                           \
    X(aclrtMemcpyBatch)                                                                            \
    X(aclrtMemcpyBatchAsync)                                                                       \
    X(aclrtMemcpyBatchAsyncV2)                                                                     \
    X(aclrtMemcpyBatchV2)                                                                          \
    X(aclrtNotifyBatchReset)                                                                       \
    X(aclrtRandomNumAsync)                                                                         \
    X(aclrtRegDeviceStateCallback)                                                                 \
    X(aclrtRegStreamStateCallback)                                                                 \
    X(aclrtSetDeviceTaskAbortCallback)                                                             \
    X(aclrtSetExceptionInfoCallback)                                                               \
    X(aclrtSetMemcpyDesc)                                                                          \
    X(aclrtSetStreamAttribute)                                                                     \
    X(aclrtMemPoolSetAttr)                                                                         \
    X(aclrtMemPoolGetAttr)                                                                         \
    X(acltdtCreateDataItem)                                                                        \
    X(acltdtGetDimsFromItem)                                                                       \
    X(acltdtGetQueueAttr)                                                                          \
    X(acltdtGetQueueRouteParam)                                                                    \
    X(acltdtSetQueueAttr)                                                                          \
    X(acltdtSetQueueRouteQueryInfo)
#define BLYI_PY_DECLARE(name) PyObject *blyi_py_##name(PyObject *self, PyObject *args);
BLYI_PY_OWN(BLYI_PY_DECLARE)
#undef BLYI_PY_DECLARE

/* ---- acl.util */

PyObject *blyi_py_numpy_to_ptr(PyObject *self, PyObject *args);
PyObject *blyi_py_numpy_contiguous_to_ptr(PyObject *self, PyObject *args);
PyObject *blyi_py_ptr_to_numpy(PyObject *self, PyObject *args);
PyObject *blyi_py_bytes_to_ptr(PyObject *self, PyObject *args);
PyObject *blyi_py_ptr_to_bytes(PyObject *self, PyObject *args);
PyObject *blyi_py_start_thread(PyObject *self, PyObject *args);
PyObject *blyi_py_stop_thread(PyObject *self, PyObject *args);

/* ---- acl.profiler (profiler.c, profiler_report.c) */

#define BLYI_PY_PROFILER_MEMORY_EVENT 1
PyObject *blyi_py_profiler_start(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *blyi_py_profiler_stop(PyObject *self, PyObject *args);
PyObject *blyi_py_profiler_analyze(PyObject *self, PyObject *args);
PyObject *blyi_py_profiler_range_push(PyObject *self, PyObject *args);
PyObject *blyi_py_profiler_range_pop(PyObject *self, PyObject *args);
PyObject *blyi_py_profiler_mark(PyObject *self, PyObject *args);
PyObject *blyi_py_profiler_tag(PyObject *self, PyObject *args);
/* Once, at import, when acl has its submodules. */
bool blyi_py_profiler_begin(PyObject *acl);
/* Takes what is in *top, also when it fails. */
struct bly_top;
PyObject *blyi_py_report_new(const struct bly_top *top);
bool blyi_py_report_begin(PyObject *module);

#endif

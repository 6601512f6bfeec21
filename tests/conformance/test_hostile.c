/* SPDX-License-Identifier: Apache-2.0 */
/* Every argument of every exported function given NULL, zero, huge, misaligned, stale, foreign
 * and doubly freed values. A function runs in a child of its own with a time limit, so that a
 * crash or a hang is told with the function and the arguments. A call that fails must leave its
 * outputs alone. A function of the symbol list without a row here fails the test.
 *
 * The calls go through one integer signature: all arguments are integers or pointers and pass
 * in registers or words of the stack (the two half-precision functions are told apart). */
#include "acl_test.h"

#include <acl/acl_rt_memory_soma.h>
#include <acl/acl_tdt.h>
#include <acl/acl_tdt_queue.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include "base/sanitizer.h"
#include "face/acl/acl_symbols.h"

#define ARGS_MAX   10
#define VALUES_MAX 20
#define RANDOM     (BLYI_WITH_ASAN || BLYI_WITH_TSAN ? 100 : 400) /* rounds of each function */
#define AREA       (4 * MIB)
#define FILL       0xa5
#define OUT_SIZE   ((size_t)16384)

/* Kinds of arguments:
 *   o  place for a result        v  readable input        c  aclrtMallocConfig
 *   m  address of memory         l  list of addresses     s  text, S format without directives
 *   h  stream  H  one, perhaps captured or bound  e  event  x  context  b  data buffer
 *   a  allocator description  g  stream config
 *   z  size    i  int and enums  u  uint32  U  uint64     d  device
 *   p  physical handle  q  its properties  k  reserved address  w  location  y  access
 *   r  host memory to register
 *   f  function                  D  any pointer, never read    V  a va_list
 *   B  kernel binary   K  kernel function   A  argument list   R  64 KiB of readable memory
 *   Y  notify   Z  counting notify   W  a place that a failed call may write to
 *   j  count of a list   P  profiling stamp   O  key of shared memory   F  shareable handle
 *   n  a structure of zeros, or none        N  NULL, or a pointer
 *   C  tensor channel  E  its dataset  I  data item  M  shared buffer  G  queue id
 *   Q  queue attributes  J  their values  T  route  L  list of routes  8  query of routes
 *   t  milliseconds, never without end      X  as R, never NULL
 *   1  graph  2  its task  3  its task group  4  its condition  5  kind and number of bodies
 *   6  label  7  list of labels  9  file to write
 *   0  memory pool  &  its properties
 * Behind ':' comes what is returned: e an aclError, - anything else. */
static const struct row {
    const char *name, *arguments;
} rows[] = {
    {"aclAppLog", "issuS:-"},
    {"aclCreateDataBuffer", "Dz:-"},
    {"aclDataTypeSize", "i:-"},
    {"aclDestroyDataBuffer", "b:e"},
    {"aclFinalize", ":e"},
    {"aclFinalizeCallbackRegister", "ifD:e"},
    {"aclFinalizeCallbackUnRegister", "if:e"},
    {"aclFinalizeReference", "o:e"},
    {"aclFloat16ToFloat", "u:-"},
    {"aclFloatToFloat16", "u:-"},
    {"aclGetCannAttribute", "io:e"},
    {"aclGetCannAttributeList", "oo:e"},
    {"aclGetDataBufferAddr", "b:-"},
    {"aclGetDataBufferSize", "b:-"},
    {"aclGetDataBufferSizeV2", "b:-"},
    {"aclGetDeviceCapability", "dio:e"},
    {"aclGetRecentErrMsg", ":-"},
    {"aclInit", "s:e"},
    {"aclInitCallbackRegister", "ifD:e"},
    {"aclInitCallbackUnRegister", "if:e"},
    {"aclUpdateDataBuffer", "bDz:e"},
    {"acllogCheckDebugLevel", "ii:-"},
    {"acllogRecord", "iiS:-"},
    {"acllogRegisterCallback", "fDuo:e"},
    {"acllogUnregisterCallback", "U:e"},
    {"acllogVaList", "iiSV:-"},
    {"aclmdlRIAbort", "1:e"},
/* A structure by value: on the stack here, by its address there. */
#if defined(__x86_64__)
    {"aclmdlRIAddCondTask", "HuDDDD45W:e"},
#else
    {"aclmdlRIAddCondTask", "RHu:e"},
#endif
    {"aclmdlRIBindStream", "1Hu:e"},
    {"aclmdlRIBuildBegin", "ou:e"},
    {"aclmdlRIBuildEnd", "1N:e"},
    {"aclmdlRICaptureBegin", "Hi:e"},
    {"aclmdlRICaptureEnd", "Ho:e"},
    {"aclmdlRICaptureGetInfo", "Hoo:e"},
    {"aclmdlRICaptureTaskGrpBegin", "H:e"},
    {"aclmdlRICaptureTaskGrpEnd", "Ho:e"},
    {"aclmdlRICaptureTaskUpdateBegin", "H3:e"},
    {"aclmdlRICaptureTaskUpdateEnd", "H:e"},
    {"aclmdlRICaptureThreadExchangeMode", "v:e"},
    {"aclmdlRICaptureToModelRIBegin", "H1i:e"},
    {"aclmdlRICondHandleCreate", "1uio:e"},
    {"aclmdlRICondHandleGetCondPtr", "4o:e"},
    {"aclmdlRIDebugJsonPrint", "19u:e"},
    {"aclmdlRIDebugPrint", "1:e"},
    {"aclmdlRIDestroy", "1:e"},
    {"aclmdlRIDestroyRegisterCallback", "1fD:e"},
    {"aclmdlRIDestroyUnregisterCallback", "1f:e"},
    {"aclmdlRIEndTask", "1H:e"},
    {"aclmdlRIExecute", "1i:e"},
    {"aclmdlRIExecuteAsync", "1H:e"},
    {"aclmdlRIGetId", "1o:e"},
    {"aclmdlRIGetName", "1uo:e"},
    {"aclmdlRIGetStreams", "1ov:e"},
    {"aclmdlRIGetTasksByStream", "Hov:e"},
    {"aclmdlRISetName", "1s:e"},
    {"aclmdlRITaskDisable", "2:e"},
    {"aclmdlRITaskGetParams", "2o:e"},
    {"aclmdlRITaskGetSeqId", "2o:e"},
    {"aclmdlRITaskGetType", "2o:e"},
    {"aclmdlRITaskSetParams", "2R:e"},
    {"aclmdlRIUnbindStream", "1H:e"},
    {"aclmdlRIUpdate", "1:e"},
    {"aclprofCreateConfig", "luinU:-"},
    {"aclprofCreateStamp", ":-"},
    {"aclprofDestroyConfig", "D:e"},
    {"aclprofDestroyStamp", "P:-"},
    {"aclprofFinalize", ":e"},
    {"aclprofInit", "9z:e"},
    {"aclprofMark", "P:e"},
    {"aclprofMarkEx", "szh:e"},
    {"aclprofPop", ":e"},
    {"aclprofPush", "P:e"},
    {"aclprofRangePop", ":e"},
    {"aclprofRangePushEx", "n:e"},
    {"aclprofRangeStart", "Po:e"},
    {"aclprofRangeStop", "u:e"},
    {"aclprofSetStampTraceMessage", "Psu:e"},
    {"aclprofStart", "D:e"},
    {"aclprofStop", "D:e"},
    {"aclprofStr2Id", "s:-"},
    {"aclrtActiveStream", "HH:e"},
    {"aclrtAllocBuf", "oz:e"},
    {"aclrtAllocatorCreateDesc", ":-"},
    {"aclrtAllocatorDestroyDesc", "a:e"},
    {"aclrtAllocatorGetByStream", "hoooooo:e"},
    {"aclrtAllocatorRegister", "ha:e"},
    {"aclrtAllocatorSetAllocAdviseFuncToDesc", "af:e"},
    {"aclrtAllocatorSetAllocFuncToDesc", "af:e"},
    {"aclrtAllocatorSetFreeFuncToDesc", "af:e"},
    {"aclrtAllocatorSetGetAddrFromBlockFuncToDesc", "af:e"},
    {"aclrtAllocatorSetObjToDesc", "aD:e"},
    {"aclrtAllocatorUnregister", "h:e"},
    {"aclrtAppendBufChain", "MM:e"},
    {"aclrtBinaryGetFunction", "Bso:e"},
    {"aclrtBinaryGetGlobal", "Bsoo:e"},
    {"aclrtBinaryLoad", "Bo:e"},
    {"aclrtBinaryLoadFromData", "Rzno:e"},
    {"aclrtBinaryLoadFromFile", "sno:e"},
    {"aclrtBinarySetExceptionCallback", "BfD:e"},
    {"aclrtBinaryUnLoad", "B:e"},
    {"aclrtCheckArchCompatibility", "so:e"},
    {"aclrtCheckMemType", "luuou:e"},
    {"aclrtCmoAsync", "mzih:e"},
    {"aclrtCntNotifyCreate", "oU:e"},
    {"aclrtCntNotifyDestroy", "Z:e"},
    {"aclrtCntNotifyGetId", "Zo:e"},
    {"aclrtCntNotifyRecord", "Zhv:e"},
    {"aclrtCntNotifyReset", "Zh:e"},
    {"aclrtCntNotifyWaitWithTimeout", "Zhv:e"},
    {"aclrtCopyBufRef", "Mo:e"},
    {"aclrtCreateBinary", "Dz:-"},
    {"aclrtCreateContext", "od:e"},
    {"aclrtCreateEvent", "o:e"},
    {"aclrtCreateEventExWithFlag", "ou:e"},
    {"aclrtCreateEventWithFlag", "ou:e"},
    {"aclrtCreateGroupInfo", ":-"},
    {"aclrtCreateLabel", "o:e"},
    {"aclrtCreateLabelList", "lzo:e"},
    {"aclrtCreateNotify", "oU:e"},
    {"aclrtCreateStream", "o:e"},
    {"aclrtCreateStreamConfigHandle", ":-"},
    {"aclrtCreateStreamV2", "og:e"},
    {"aclrtCreateStreamWithConfig", "ouu:e"},
    {"aclrtCtxGetCurrentDefaultStream", "o:e"},
    {"aclrtCtxGetSysParamOpt", "io:e"},
    {"aclrtCtxSetSysParamOpt", "iU:e"},
    {"aclrtDestroyBinary", "B:e"},
    {"aclrtDestroyContext", "x:e"},
    {"aclrtDestroyEvent", "e:e"},
    {"aclrtDestroyGroupInfo", "D:e"},
    {"aclrtDestroyLabel", "6:e"},
    {"aclrtDestroyLabelList", "7:e"},
    {"aclrtDestroyNotify", "Y:e"},
    {"aclrtDestroyStream", "H:e"},
    {"aclrtDestroyStreamConfigHandle", "g:e"},
    {"aclrtDestroyStreamForce", "H:e"},
    {"aclrtDeviceCanAccessPeer", "odd:e"},
    {"aclrtDeviceDisablePeerAccess", "d:e"},
    {"aclrtDeviceEnablePeerAccess", "du:e"},
    {"aclrtDeviceGetBareTgid", "o:e"},
    {"aclrtDeviceGetByPCIBusId", "so:e"},
    {"aclrtDeviceGetLimit", "io:e"},
    {"aclrtDeviceGetPCIBusId", "doi:e"},
    {"aclrtDeviceGetStreamPriorityRange", "oo:e"},
    {"aclrtDeviceGetUuid", "do:e"},
    {"aclrtDeviceL2CacheFlush", "N:e"},
    {"aclrtDevicePeerAccessStatus", "ddo:e"},
    {"aclrtDeviceSetLimit", "iz:e"},
    {"aclrtDeviceTaskAbort", "du:e"},
    {"aclrtEventElapsedTime", "oee:e"},
    {"aclrtEventGetTimestamp", "eo:e"},
    {"aclrtExceptionInfoCallbackRegister", "f:e"},
    {"aclrtExceptionInfoCallbackUnregister", "f:e"},
    {"aclrtFree", "m:e"},
    {"aclrtFreeBuf", "M:e"},
    {"aclrtFreeHost", "m:e"},
    {"aclrtFreeHostWithDevSync", "m:e"},
    {"aclrtFreePhysical", "p:e"},
    {"aclrtFreeWithDevSync", "m:e"},
    {"aclrtFunctionGetAvailDynUbufPerBlock", "Kuo:e"},
    {"aclrtFunctionGetBinary", "Ko:e"},
    {"aclrtFunctionGetParamCount", "Ko:e"},
    {"aclrtFunctionGetParamInfo", "Kzoo:e"},
    {"aclrtGetAllGroupInfo", "D:e"},
    {"aclrtGetArgsFromExceptionInfo", "voo:e"},
    {"aclrtGetBufChainNum", "Mo:e"},
    {"aclrtGetBufData", "Moo:e"},
    {"aclrtGetBufDataLen", "Mo:e"},
    {"aclrtGetBufFromChain", "Muo:e"},
    {"aclrtGetBufUserData", "Mmzz:e"},
    {"aclrtGetCurrentContext", "o:e"},
    {"aclrtGetDevice", "o:e"},
    {"aclrtGetDeviceCapability", "dio:e"},
    {"aclrtGetDeviceCount", "o:e"},
    {"aclrtGetDeviceIdFromExceptionInfo", "v:-"},
    {"aclrtGetDeviceInfo", "dio:e"},
    {"aclrtGetDeviceResLimit", "dio:e"},
    {"aclrtGetDeviceSatMode", "o:e"},
    {"aclrtGetDeviceUtilizationRate", "do:e"},
    {"aclrtGetDevicesTopo", "ddo:e"},
    {"aclrtGetErrorCodeFromExceptionInfo", "v:-"},
    {"aclrtGetErrorVerbose", "do:e"},
    {"aclrtGetEventAvailNum", "o:e"},
    {"aclrtGetEventId", "eo:e"},
    {"aclrtGetFloatOverflowStatus", "mUH:e"},
    {"aclrtGetFuncHandleFromExceptionInfo", "vo:e"},
    {"aclrtGetFunctionAddr", "Koo:e"},
    {"aclrtGetFunctionName", "Kuo:e"},
    {"aclrtGetFunctionSize", "Koo:e"},
    {"aclrtGetGroupCount", "o:e"},
    {"aclrtGetGroupInfoDetail", "Diiozo:e"},
    {"aclrtGetLastError", "i:-"},
    {"aclrtGetLogicDevIdByPhyDevId", "do:e"},
    {"aclrtGetLogicDevIdByUserDevId", "do:e"},
    {"aclrtGetMemInfo", "ioo:e"},
    {"aclrtGetMemUceInfo", "dozo:e"},
    {"aclrtGetMemUsageInfo", "dozo:e"},
    {"aclrtGetMemcpyDescSize", "io:e"},
    {"aclrtGetNotifyId", "Yo:e"},
    {"aclrtGetOpExecuteTimeout", "o:e"},
    {"aclrtGetOpTimeOutInterval", "o:e"},
    {"aclrtGetOverflowStatus", "mzH:e"},
    {"aclrtGetPhyDevIdByLogicDevId", "do:e"},
    {"aclrtGetPhyDevIdByUserDevId", "do:e"},
    {"aclrtGetPrimaryCtxState", "doo:e"},
    {"aclrtGetResInCurrentThread", "io:e"},
    {"aclrtGetRunMode", "o:e"},
    {"aclrtGetSocName", ":-"},
    {"aclrtGetStreamAttribute", "hio:e"},
    {"aclrtGetStreamAvailableNum", "o:e"},
    {"aclrtGetStreamIdFromExceptionInfo", "v:-"},
    {"aclrtGetStreamOverflowSwitch", "ho:e"},
    {"aclrtGetStreamResLimit", "hio:e"},
    {"aclrtGetSysParamOpt", "io:e"},
    {"aclrtGetTaskIdFromExceptionInfo", "v:-"},
    {"aclrtGetThreadIdFromExceptionInfo", "v:-"},
    {"aclrtGetThreadLastTaskId", "o:e"},
    {"aclrtGetUserDevIdByLogicDevId", "do:e"},
    {"aclrtGetUserDevIdByPhyDevId", "do:e"},
    {"aclrtGetVersion", "ooo:e"},
    {"aclrtHostGetDevicePointer", "mou:e"},
    {"aclrtHostMemMapCapabilities", "dio:e"},
    {"aclrtHostRegister", "rzio:e"},
    {"aclrtHostRegisterV2", "rzu:e"},
    {"aclrtHostUnregister", "r:e"},
    {"aclrtIpcGetEventHandle", "eo:e"},
#if defined(__x86_64__) /* the handle, by value, is what lies on the stack */
    {"aclrtIpcOpenEventHandle", "o:e"},
#else /* a pointer to it */
    {"aclrtIpcOpenEventHandle", "Xo:e"},
#endif
    {"aclrtIpcMemClose", "O:e"},
    {"aclrtIpcMemGetExportKey", "mzozU:e"},
    {"aclrtIpcMemImportByKey", "oOU:e"},
    {"aclrtIpcMemImportPidInterServer", "ORj:e"},
    {"aclrtIpcMemSetAttr", "OiU:e"},
    {"aclrtIpcMemSetImportPid", "ORz:e"},
    {"aclrtKernelArgsAppend", "ARzo:e"},
    {"aclrtKernelArgsAppendPlaceHolder", "Ao:e"},
    {"aclrtKernelArgsFinalize", "A:e"},
    {"aclrtKernelArgsGetHandleMemSize", "Ko:e"},
    {"aclrtKernelArgsGetMemSize", "Kzo:e"},
    {"aclrtKernelArgsGetPlaceHolderBuffer", "Auzo:e"},
    {"aclrtKernelArgsInit", "Ko:e"},
    {"aclrtKernelArgsInitByUserMem", "KWRz:e"},
    {"aclrtKernelArgsParaUpdate", "AuRz:e"},
    {"aclrtLaunchCallback", "fDih:e"},
    {"aclrtLaunchHostFunc", "HfD:e"},
    {"aclrtLaunchKernel", "Kumzh:e"},
    {"aclrtLaunchKernelV2", "Kumznh:e"},
    {"aclrtLaunchKernelWithArgsArray", "KuHnl:e"},
    {"aclrtLaunchKernelWithConfig", "KuhnAN:e"},
    {"aclrtLaunchKernelWithHostArgs", "KuHnRznz:e"},
    {"aclrtMalloc", "ozi:e"},
    {"aclrtMallocAlign32", "ozi:e"},
    {"aclrtMallocCached", "ozi:e"},
    {"aclrtMallocForTaskScheduler", "ozic:e"},
    {"aclrtMallocHost", "oz:e"},
    {"aclrtMallocHostWithCfg", "ozc:e"},
    {"aclrtMallocPhysical", "ozqU:e"},
    {"aclrtMallocWithCfg", "ozic:e"},
    {"aclrtMapMem", "kzzpU:e"},
    {"aclrtMemExportToShareableHandle", "piUo:e"},
    {"aclrtMemExportToShareableHandleV2", "pUio:e"},
    {"aclrtMemFlush", "mz:e"},
    {"aclrtMemGetAccess", "kwo:e"},
    {"aclrtMemGetAddressRange", "moo:e"},
    {"aclrtMemGetAllocationGranularity", "qio:e"},
    {"aclrtMemGetAllocationPropertiesFromHandle", "po:e"},
    {"aclrtMemImportFromShareableHandle", "Fdo:e"},
    {"aclrtMemImportFromShareableHandleV2", "RiUo:e"},
    {"aclrtMemInvalidate", "mz:e"},
    {"aclrtMemMapNoAccess", "kzzpU:e"},
    {"aclrtMemMapSelectedLink", "kzku:e"},
    {"aclrtMemMapSetLink", "pi:e"},
    {"aclrtMemP2PMap", "mzdU:e"},
    {"aclrtMemPoolCreate", "o&:e"},
    {"aclrtMemPoolDestroy", "0:e"},
    {"aclrtMemPoolFreeAsync", "mH:e"},
    {"aclrtMemPoolGetAttr", "0io:e"},
    {"aclrtMemPoolMallocAsync", "oz0H:e"},
    {"aclrtMemPoolSetAttr", "0iv:e"},
    {"aclrtMemPoolTrimTo", "0z:e"},
    {"aclrtMemRetainAllocationHandle", "ko:e"},
    {"aclrtMemSetAccess", "kzyz:e"},
    {"aclrtMemSetPidToShareableHandle", "FRz:e"},
    {"aclrtMemSetPidToShareableHandleV2", "RiRz:e"},
    {"aclrtMemUceRepair", "dRz:e"},
    {"aclrtMemcpy", "mzmzi:e"},
    {"aclrtMemcpy2d", "mzmzzzi:e"},
    {"aclrtMemcpy2dAsync", "mzmzzziH:e"},
    {"aclrtMemcpyAsync", "mzmziH:e"},
    {"aclrtMemcpyAsyncWithCondition", "mzmzih:e"},
    {"aclrtMemcpyAsyncWithDesc", "miH:e"},
    {"aclrtMemcpyAsyncWithOffset", "mzzmzziH:e"},
    {"aclrtMemcpyBatch", "lRlRjnnjW:e"},
    {"aclrtMemcpyBatchAsync", "lRlRjnnjWh:e"},
    {"aclrtMemcpyBatchAsyncV2", "lRlRjnnjh:e"},
    {"aclrtMemcpyBatchV2", "lRlRjnnj:e"},
    {"aclrtMemset", "mziz:e"},
    {"aclrtMemsetAsync", "mzizH:e"},
    {"aclrtMemsetD32", "mzuz:e"},
    {"aclrtMemsetD32Async", "mzuzh:e"},
    {"aclrtNotifyBatchReset", "Ru:e"},
    {"aclrtNpuClearFloatOverFlowStatus", "uh:e"},
    {"aclrtNpuGetFloatOverFlowStatus", "mUuh:e"},
    {"aclrtNotifyGetExportKey", "YozU:e"},
    {"aclrtNotifyImportByKey", "osU:e"},
    {"aclrtNotifySetImportPid", "YRj:e"},
    {"aclrtNotifySetImportPidInterServer", "Ynj:e"},
    {"aclrtPeekAtLastError", "i:-"},
    {"aclrtPersistentTaskClean", "h:e"},
    {"aclrtPointerGetAttributes", "mo:e"},
    {"aclrtProcessHostFunc", "i:e"},
    {"aclrtProcessReport", "i:e"},
    {"aclrtQueryDeviceStatus", "do:e"},
    {"aclrtQueryEvent", "eo:e"},
    {"aclrtQueryEventStatus", "eo:e"},
    {"aclrtQueryEventWaitStatus", "eo:e"},
    {"aclrtRandomNumAsync", "RHN:e"},
    {"aclrtRecordEvent", "eH:e"},
    {"aclrtRecordEventWithFlag", "eHu:e"},
    {"aclrtRecordNotify", "YH:e"},
    {"aclrtReduceAsync", "mmziiHN:e"},
    {"aclrtRegDeviceStateCallback", "sfD:e"},
    {"aclrtRegStreamStateCallback", "sfD:e"},
    {"aclrtRegisterCpuFunc", "Bsso:e"},
    {"aclrtReleaseMemAddress", "k:e"},
    {"aclrtRepairError", "dR:e"},
    {"aclrtReserveMemAddress", "ozzkU:e"},
    {"aclrtReserveMemAddressNoUCMemory", "ozzkU:e"},
    {"aclrtResetDevice", "d:e"},
    {"aclrtResetDeviceForce", "d:e"},
    {"aclrtResetDeviceResLimit", "d:e"},
    {"aclrtResetEvent", "eH:e"},
    {"aclrtResetFloatOverflowStatus", "H:e"},
    {"aclrtResetOverflowStatus", "H:e"},
    {"aclrtResetStreamResLimit", "h:e"},
    {"aclrtSetBufDataLen", "Mz:e"},
    {"aclrtSetBufUserData", "Mmzz:e"},
    {"aclrtSetCurrentContext", "x:e"},
    {"aclrtSetDevice", "d:e"},
    {"aclrtSetDeviceResLimit", "diu:e"},
    {"aclrtSetDeviceSatMode", "i:e"},
    {"aclrtSetDeviceTaskAbortCallback", "sfD:e"},
    {"aclrtSetExceptionInfoCallback", "f:e"},
    {"aclrtSetGroup", "i:e"},
    {"aclrtSetLabel", "6H:e"},
    {"aclrtSetMemcpyDesc", "mimmzN:e"},
    {"aclrtSetOpExecuteTimeOut", "u:e"},
    {"aclrtSetOpExecuteTimeOutV2", "Uo:e"},
    {"aclrtSetOpExecuteTimeOutWithMs", "u:e"},
    {"aclrtSetOpWaitTimeout", "u:e"},
    {"aclrtSetStreamAttribute", "hiv:e"},
    {"aclrtSetStreamConfigOpt", "givz:e"},
    {"aclrtSetStreamFailureMode", "hU:e"},
    {"aclrtSetStreamOverflowSwitch", "hu:e"},
    {"aclrtSetStreamResLimit", "hiu:e"},
    {"aclrtSetSysParamOpt", "iU:e"},
    {"aclrtSetTsDevice", "i:e"},
    {"aclrtSnapShotCallbackRegister", "ifD:e"},
    {"aclrtSnapShotCallbackUnregister", "if:e"},
    {"aclrtSnapShotProcessBackup", "in:e"},
    {"aclrtSnapShotProcessLock", "iD:e"},
    {"aclrtSnapShotProcessRestore", "in:e"},
    {"aclrtSnapShotProcessUnlock", "iD:e"},
    {"aclrtStreamAbort", "H:e"},
    {"aclrtStreamGetFlags", "ho:e"},
    {"aclrtStreamGetId", "ho:e"},
    {"aclrtStreamGetPriority", "ho:e"},
    {"aclrtStreamQuery", "Ho:e"},
    {"aclrtStreamStop", "H:e"},
    {"aclrtStreamWaitEvent", "He:e"},
    {"aclrtStreamWaitEventWithFlag", "Heuu:e"},
    {"aclrtStreamWaitEventWithTimeout", "hei:e"},
    {"aclrtSubscribeHostFunc", "Uh:e"},
    {"aclrtSubscribeReport", "Uh:e"},
    {"aclrtSwitchLabelByIndex", "mu7H:e"},
    {"aclrtSwitchStream", "mimiHHH:e"},
    {"aclrtSynchronizeDevice", ":e"},
    {"aclrtSynchronizeDeviceWithTimeout", "i:e"},
    {"aclrtSynchronizeEvent", "e:e"},
    {"aclrtSynchronizeEventWithTimeout", "ei:e"},
    {"aclrtSynchronizeStream", "H:e"},
    {"aclrtSynchronizeStreamWithTimeout", "hi:e"},
    {"aclrtUnSubscribeHostFunc", "Uh:e"},
    {"aclrtUnSubscribeReport", "Uh:e"},
    {"aclrtUnmapMem", "k:e"},
    {"aclrtUnuseStreamResInCurrentThread", "h:e"},
    {"aclrtUseStreamResInCurrentThread", "h:e"},
    {"aclrtValueWait", "mUuh:e"},
    {"aclrtValueWrite", "mUuH:e"},
    {"aclrtWaitAndResetNotify", "Yhu:e"},
    {"aclsysGetCANNVersion", "io:e"},
    {"aclsysGetVersionNum", "so:e"},
    {"aclsysGetVersionStr", "so:e"},
    {"acltdtAddDataItem", "EI:e"},
    {"acltdtAddQueueRoute", "LT:e"},
    {"acltdtAllocBuf", "zuo:e"},
    {"acltdtAppendBufChain", "MM:e"},
    {"acltdtBindQueueRoutes", "L:e"},
    {"acltdtCleanChannel", "C:e"},
    {"acltdtCopyBufRef", "Mo:e"},
    {"acltdtCreateChannelWithCapacity", "dsz:-"},
    {"acltdtCreateDataItem", "ivuimz:-"},
    {"acltdtCreateDataset", ":-"},
    {"acltdtCreateQueue", "Qo:e"},
    {"acltdtCreateQueueAttr", ":-"},
    {"acltdtCreateQueueRoute", "GG:-"},
    {"acltdtCreateQueueRouteList", ":-"},
    {"acltdtCreateQueueRouteQueryInfo", ":-"},
    {"acltdtDequeue", "Got:e"},
    {"acltdtDequeueData", "Gmzomzt:e"},
    {"acltdtDestroyChannel", "C:e"},
    {"acltdtDestroyDataItem", "I:e"},
    {"acltdtDestroyDataset", "E:e"},
    {"acltdtDestroyQueue", "G:e"},
    {"acltdtDestroyQueueAttr", "Q:e"},
    {"acltdtDestroyQueueRoute", "T:e"},
    {"acltdtDestroyQueueRouteList", "L:e"},
    {"acltdtDestroyQueueRouteQueryInfo", "8:e"},
    {"acltdtEnqueue", "GMt:e"},
    {"acltdtEnqueueData", "GmzmztU:e"},
    {"acltdtFreeBuf", "M:e"},
    {"acltdtGetBufChainNum", "Mo:e"},
    {"acltdtGetBufData", "Moo:e"},
    {"acltdtGetBufDataLen", "Mo:e"},
    {"acltdtGetBufFromChain", "Muo:e"},
    {"acltdtGetBufUserData", "Mmzz:e"},
    {"acltdtGetDataAddrFromItem", "I:-"},
    {"acltdtGetDataItem", "Ez:-"},
    {"acltdtGetDataSizeFromItem", "I:-"},
    {"acltdtGetDataTypeFromItem", "I:-"},
    {"acltdtGetDatasetName", "E:-"},
    {"acltdtGetDatasetSize", "E:-"},
    {"acltdtGetDimNumFromItem", "I:-"},
    {"acltdtGetDimsFromItem", "Ioz:e"},
    {"acltdtGetQueueAttr", "Qizoo:e"},
    {"acltdtGetQueueRoute", "LzT:e"},
    {"acltdtGetQueueRouteNum", "L:-"},
    {"acltdtGetQueueRouteParam", "Tizoo:e"},
    {"acltdtGetSliceInfoFromItem", "Ioo:e"},
    {"acltdtGetTensorTypeFromItem", "I:-"},
    {"acltdtQueryChannelSize", "Co:e"},
    {"acltdtQueryQueueRoutes", "8L:e"},
    {"acltdtReceiveTensor", "CEt:e"},
    {"acltdtSendTensor", "CEt:e"},
    {"acltdtSetBufDataLen", "Mz:e"},
    {"acltdtSetBufUserData", "Mmzz:e"},
    {"acltdtSetQueueAttr", "QizJ:e"},
    {"acltdtSetQueueRouteQueryInfo", "8izR:e"},
    {"acltdtStopChannel", "C:e"},
    {"acltdtUnbindQueueRoutes", "L:e"},
    {"rtDeviceGetBareTgid", "o:e"},
    {"rtDisableP2P", "dd:e"},
    {"rtEnableP2P", "ddu:e"},
    {"rtGetDeviceInfo", "diio:e"},
    {"rtGetLogicDevIdByUserDevId", "do:e"},
    {"rtIpcCloseMemory", "m:e"},
    {"rtIpcDestroyMemoryName", "O:e"},
    {"rtIpcOpenMemory", "oO:e"},
    {"rtIpcSetMemoryName", "mzou:e"},
    {"rtMemcpyAsyncWithoutCheckKind", "mzmzuh:e"},
    {"rtSetIpcMemorySuperPodPid", "OuRi:e"},
};

static const char *const symbols[] = {
#define SYMBOL_NAME(name) #name,
    BLYI_ACL_SYMBOLS(SYMBOL_NAME)
#undef SYMBOL_NAME
};

/* The world of one child: a good value and bad ones of each kind. */
static struct {
    aclrtContext context, other_context, dead_context;
    aclrtStream stream, other_stream, dead_stream;
    aclrtEvent event, dead_event;
    aclDataBuffer *buffer, *dead_buffer;
    aclrtAllocatorDesc desc, dead_desc;
    aclrtStreamConfigHandle *config, *dead_config;
    char *card, *dead_card, *other_card, *pinned, *dead_pinned, *area;
    char *out[ARGS_MAX];
    void *list[512];
    void *range, *mapped, *phys, *dead_phys;
    char *host;
    aclrtPhysicalMemProp prop, prop_bad;
    aclrtMemLocation location, location_bad;
    aclrtMemAccessDesc access[2], access_bad;
    aclrtMallocAttribute attribute;
    aclrtMallocConfig malloc_config, malloc_config_bad;
    uint64_t input[8], zeros[8];
    aclrtBinHandle binary, dead_binary;
    aclrtFuncHandle function;
    aclrtArgsHandle args;
    aclrtNotify notify, dead_notify;
    void *stamp, *dead_stamp;
    aclrtCntNotify counting;
    acltdtChannelHandle *channel, *dead_channel;
    acltdtDataset *dataset, *dead_dataset;
    acltdtDataItem *item, *dead_item;
    acltdtBuf buf, dead_buf;
    uint32_t queue;
    acltdtQueueAttr *attr, *dead_attr;
    const char *attr_value;
    acltdtQueueRoute *route, *dead_route;
    acltdtQueueRouteList *routes, *dead_routes;
    acltdtQueueRouteQueryInfo *query, *dead_query;
    aclmdlRI graph, dead_graph, captured, body;
    aclmdlRITask task;
    aclrtTaskGrp group;
    aclmdlRICondHandle condition;
    aclrtStream capturing, bound;
    aclrtLabel label;
    aclrtLabelList labels;
    aclrtMemPool pool, dead_pool;
    aclrtMemPoolProps pool_props, pool_props_bad;
    void *pooled, *dead_pooled;
    char key[65], dead_key[65];
    uint64_t shared;
} world;

struct values {
    uint64_t list[VALUES_MAX]; /* the first is good */
    size_t n;
};

/* Shown by the parent when the child dies. */
static struct report {
    char call[512];
} * report;

static uint64_t seed = 20240607;

static uint64_t next_random(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static int nothing(void)
{
    return 0;
}

/* Memory with nothing behind it, so that a copy that runs too far stops. */
static char *guarded(size_t size)
{
    char *base = mmap(NULL, size + 2 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED);
    CHECK(mprotect(base + MIB, size, PROT_READ | PROT_WRITE) == 0);
    return base + MIB;
}

/* What went away is replaced; what is there still is left. */
static void build_tdt(void)
{
    int64_t one = 1;
    world.dead_channel = acltdtCreateChannelWithCapacity(0, "dead", 2);
    OK(acltdtDestroyChannel(world.dead_channel));
    world.channel = acltdtCreateChannelWithCapacity(0, "live", 3);
    world.dead_item = acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, NULL, 0, ACL_INT8, NULL, 0);
    OK(acltdtDestroyDataItem(world.dead_item));
    world.item = acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &one, 1, ACL_INT8, world.input, 8);
    world.dead_dataset = acltdtCreateDataset();
    OK(acltdtDestroyDataset(world.dead_dataset));
    world.dataset = acltdtCreateDataset();
    OK(acltdtAddDataItem(world.dataset, world.item));
    OK(acltdtAllocBuf(64, 0, &world.dead_buf));
    OK(acltdtFreeBuf(world.dead_buf));
    OK(acltdtAllocBuf(64, 0, &world.buf));
    world.dead_attr = acltdtCreateQueueAttr();
    OK(acltdtDestroyQueueAttr(world.dead_attr));
    world.attr = acltdtCreateQueueAttr();
    world.attr_value = "name";
    OK(acltdtCreateQueue(NULL, &world.queue));
    OK(acltdtEnqueueData(world.queue, &one, sizeof(one), NULL, 0, 0, 0));
    world.dead_route = acltdtCreateQueueRoute(0, 1);
    OK(acltdtDestroyQueueRoute(world.dead_route));
    world.route = acltdtCreateQueueRoute(world.queue, world.queue + 1);
    world.dead_routes = acltdtCreateQueueRouteList();
    OK(acltdtDestroyQueueRouteList(world.dead_routes));
    world.routes = acltdtCreateQueueRouteList();
    OK(acltdtAddQueueRoute(world.routes, world.route));
    world.dead_query = acltdtCreateQueueRouteQueryInfo();
    OK(acltdtDestroyQueueRouteQueryInfo(world.dead_query));
    world.query = acltdtCreateQueueRouteQueryInfo();
}

static void mend_tdt(void)
{
    size_t size;
    if (acltdtQueryChannelSize(world.channel, &size) != 0 ||
        acltdtGetDatasetSize(world.dataset) != 1 || acltdtGetDataSizeFromItem(world.item) != 8 ||
        acltdtGetBufDataLen(world.buf, &size) != 0 ||
        acltdtSetQueueAttr(world.attr, ACL_TDT_QUEUE_NAME_PTR, 8, &world.attr_value) != 0 ||
        acltdtAddQueueRoute(world.routes, world.route) != 0 ||
        acltdtSetQueueRouteQueryInfo(world.query, 0, 4, &world.queue) != 0 ||
        acltdtEnqueueData(world.queue, &size, sizeof(size), NULL, 0, 0, 0) % 100000 > 7014)
        build_tdt();
}

/* A graph that runs, one that is being captured, with what is in them. */
static void build_graphs(void)
{
    aclrtStream own;
    uint32_t n = 1;
    OK(aclmdlRICaptureBegin(world.stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclmdlRICaptureEnd(world.stream, &world.dead_graph));
    OK(aclmdlRIDestroy(world.dead_graph));
    OK(aclmdlRICaptureBegin(world.stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclmdlRICaptureTaskGrpBegin(world.stream));
    OK(aclrtLaunchKernelWithHostArgs(world.function, 1, world.stream, NULL, &world.card,
                                     sizeof(world.card), NULL, 0));
    OK(aclmdlRICaptureTaskGrpEnd(world.stream, &world.group));
    OK(aclmdlRICaptureEnd(world.stream, &world.graph));
    OK(aclmdlRIGetStreams(world.graph, &own, &n));
    OK(aclmdlRIGetTasksByStream(own, &world.task, &n));
    if (world.label != NULL)
        return;
    OK(aclrtCreateLabel(&world.label));
    OK(aclrtCreateLabelList(&world.label, 1, &world.labels));
    OK(aclrtCreateStream(&world.capturing));
    OK(aclmdlRICaptureBegin(world.capturing, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclmdlRICaptureGetInfo(world.capturing, NULL, &world.captured));
    OK(aclmdlRICondHandleCreate(world.captured, 1, (aclmdlRICondHandleFlag)0, &world.condition));
    aclmdlRICondTaskParams params = {world.condition, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &world.body};
    OK(aclmdlRIAddCondTask(params, world.capturing, 0));
    OK(aclrtCreateStreamWithConfig(&world.bound, 0, ACL_STREAM_PERSISTENT));
    aclmdlRI built;
    OK(aclmdlRIBuildBegin(&built, 0));
    OK(aclmdlRIBindStream(built, world.bound, ACL_MODEL_STREAM_FLAG_HEAD));
}

static void build_pools(void)
{
    world.pool_props =
        (aclrtMemPoolProps){.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}, .maxSize = 32 * MIB};
    world.pool_props_bad = world.pool_props;
    world.pool_props_bad.reserved[31] = 1;
    OK(aclrtMemPoolCreate(&world.dead_pool, &world.pool_props));
    OK(aclrtMemPoolDestroy(world.dead_pool));
    OK(aclrtMemPoolCreate(&world.pool, &world.pool_props));
    OK(aclrtMemPoolMallocAsync(&world.dead_pooled, 4 * MIB, world.pool, world.stream));
    OK(aclrtMemPoolFreeAsync(world.dead_pooled, world.stream));
    OK(aclrtMemPoolMallocAsync(&world.pooled, 2 * MIB, world.pool, world.stream));
}

static void mend_pools(void)
{
    uint64_t size = 0;
    if (aclrtMemPoolGetAttr(world.pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &size) != 0)
        build_pools();
    else if (size == 0)
        OK(aclrtMemPoolMallocAsync(&world.pooled, 2 * MIB, world.pool, world.stream));
}

static void build_world(void)
{
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc((void **)&world.other_card, 4096, HUGE_FIRST));
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&world.context));
    OK(aclrtCreateContext(&world.dead_context, 0));
    OK(aclrtDestroyContext(world.dead_context));
    OK(aclrtCreateContext(&world.other_context, 0));
    OK(aclrtCreateStream(&world.other_stream));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&world.dead_stream));
    OK(aclrtDestroyStream(world.dead_stream));
    OK(aclrtCreateStream(&world.stream));
    OK(aclrtCreateEvent(&world.dead_event));
    OK(aclrtDestroyEvent(world.dead_event));
    OK(aclrtCreateEvent(&world.event));
    OK(aclrtRecordEvent(world.event, world.stream));
    OK(aclrtSynchronizeStream(world.stream));
    OK(aclrtMalloc((void **)&world.card, 4096, HUGE_FIRST));
    OK(aclrtMalloc((void **)&world.dead_card, 4 * MIB, HUGE_FIRST));
    OK(aclrtFree(world.dead_card));
    OK(aclrtMallocHost((void **)&world.pinned, 4096));
    OK(aclrtMallocHost((void **)&world.dead_pinned, 4096));
    OK(aclrtFreeHost(world.dead_pinned));
    world.dead_buffer = aclCreateDataBuffer(NULL, 0);
    OK(aclDestroyDataBuffer(world.dead_buffer));
    world.buffer = aclCreateDataBuffer(&world, 1);
    world.dead_desc = aclrtAllocatorCreateDesc();
    OK(aclrtAllocatorDestroyDesc(world.dead_desc));
    world.desc = aclrtAllocatorCreateDesc();
    world.config = aclrtCreateStreamConfigHandle();
    world.dead_config = aclrtCreateStreamConfigHandle();
    OK(aclrtDestroyStreamConfigHandle(world.dead_config));
    CHECK(world.buffer != NULL && world.desc != NULL && world.config != NULL);
    world.prop = (aclrtPhysicalMemProp){.memAttr = ACL_HBM_MEM_HUGE,
                                        .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    world.prop_bad = world.prop;
    world.prop_bad.memAttr = (aclrtMemAttr)99;
    world.location = world.prop.location;
    world.location_bad = (aclrtMemLocation){77, (aclrtMemLocationType)9};
    world.access[0] = world.access[1] =
        (aclrtMemAccessDesc){ACL_RT_MEM_ACCESS_FLAGS_READWRITE, world.location, {0}};
    world.access_bad = (aclrtMemAccessDesc){ACL_RT_MEM_ACCESS_FLAGS_READ, world.location, {0}};
    OK(aclrtReserveMemAddress(&world.range, 8 * MIB, 0, NULL, 1));
    OK(aclrtReserveMemAddress(&world.mapped, 2 * MIB, 0, NULL, 1));
    OK(aclrtMallocPhysical(&world.dead_phys, 2 * MIB, &world.prop, 0));
    OK(aclrtFreePhysical(world.dead_phys));
    OK(aclrtMallocPhysical(&world.phys, 2 * MIB, &world.prop, 0));
    OK(aclrtMapMem(world.mapped, 2 * MIB, 0, world.phys, 0));
    OK(aclrtMemExportToShareableHandle(world.phys, ACL_MEM_HANDLE_TYPE_NONE, 0, &world.shared));
    OK(aclrtIpcMemGetExportKey(world.card, 4096, world.dead_key, sizeof(world.dead_key), 0));
    OK(aclrtIpcMemClose(world.dead_key));
    OK(aclrtIpcMemGetExportKey(world.card, 4096, world.key, sizeof(world.key), 0));
    if (world.host == NULL)
        world.host = guarded(2 * MIB);
    world.list[0] = world.card;
    world.list[1] = world.other_card;
    world.attribute.attr = ACL_RT_MEM_ATTR_MODULE_ID;
    world.malloc_config = (aclrtMallocConfig){&world.attribute, 1};
    world.malloc_config_bad = (aclrtMallocConfig){NULL, 3};
    world.stamp = aclprofCreateStamp();
    world.dead_stamp = aclprofCreateStamp();
    aclprofDestroyStamp(world.dead_stamp);
    OK(aclrtCreateNotify(&world.dead_notify, 0));
    OK(aclrtDestroyNotify(world.dead_notify));
    OK(aclrtCreateNotify(&world.notify, 0));
    OK(aclrtCntNotifyCreate(&world.counting, 0));
    aclrtParamHandle param;
    OK(aclrtBinaryLoadFromFile(TEST_KERNELS, NULL, &world.dead_binary));
    OK(aclrtBinaryUnLoad(world.dead_binary));
    OK(aclrtBinaryLoadFromFile(TEST_KERNELS, NULL, &world.binary));
    OK(aclrtBinaryGetFunction(world.binary, "add_one", &world.function));
    OK(aclrtKernelArgsInit(world.function, &world.args));
    OK(aclrtKernelArgsAppend(world.args, &world.card, sizeof(world.card), &param));
    OK(aclrtKernelArgsAppendPlaceHolder(world.args, &param));
    build_tdt();
    build_graphs();
    build_pools();
}

/* What the last call destroyed is made again. */
static void mend_world(void)
{
    int32_t id, one = 1;
    size_t size;
    aclrtContext now = NULL;
    if (aclrtGetCurrentContext(&now) != 0 || now != world.context) {
        if (aclrtSetCurrentContext(world.context) != 0) {
            build_world();
            return;
        }
    }
    char name[32];
    aclrtPhysicalMemProp prop;
    uint32_t is_range = 0;
    (void)aclrtUnmapMem(world.range);
    (void)aclrtCheckMemType(&world.range, 1, ACL_RT_MEM_TYPE_RSVD, &is_range, 0);
    if (is_range != 1 || aclrtMemGetAddressRange(world.mapped, NULL, &size) != 0 ||
        aclrtMemGetAllocationPropertiesFromHandle(world.phys, &prop) != 0 ||
        aclrtStreamGetId(world.stream, &id) != 0 ||
        aclrtGetFunctionName(world.function, sizeof(name), name) != 0 ||
        aclmdlRIGetId(world.graph, (uint32_t *)&id) != 0 ||
        aclrtGetNotifyId(world.notify, (uint32_t *)&id) != 0 ||
        aclrtCntNotifyGetId(world.counting, (uint32_t *)&id) != 0 ||
        aclrtMemGetAddressRange(world.card, NULL, &size) != 0 ||
        aclrtMemGetAddressRange(world.pinned, NULL, &size) != 0 ||
        aclrtMemGetAddressRange(world.other_card, NULL, &size) != 0 ||
        aclrtSynchronizeEventWithTimeout(world.event, 100) != 0 ||
        aclUpdateDataBuffer(world.buffer, NULL, 0) != 0 ||
        aclrtAllocatorSetObjToDesc(world.desc, &world) != 0 ||
        aclrtIpcMemSetImportPid(world.key, &one, 1) != 0 ||
        aclrtMemSetPidToShareableHandle(world.shared, &one, 1) != 0 ||
        aclrtStreamGetId(world.other_stream, &id) != 0)
        build_world();
    mend_tdt();
    mend_pools();
}

#define P(pointer) ((uint64_t)(uintptr_t)(pointer))
#define ADD(...)                                                                                   \
    do {                                                                                           \
        const uint64_t more_[] = {__VA_ARGS__};                                                    \
        for (size_t i_ = 0; i_ < sizeof(more_) / sizeof(more_[0]); i_++)                           \
            values->list[values->n++] = more_[i_];                                                 \
    } while (0)
#define ODD_HANDLES 0, 1, UINT64_MAX, P(&world), P(world.card), P(world.area)

static void values_of(char kind, size_t index, struct values *values)
{
    static char long_text[5000];
    memset(long_text, 'x', sizeof(long_text) - 1);
    values->n = 0;
    switch (kind) {
    case 'o':
        ADD(P(world.out[index]), 0);
        break;
    case 'v':
        ADD(P(world.input), 0);
        break;
    case '0':
        ADD(P(world.pool), P(world.dead_pool), P(world.stream), ODD_HANDLES);
        break;
    case '&':
        ADD(P(&world.pool_props), 0, P(&world.pool_props_bad));
        break;
    case 'Y':
        ADD(P(world.notify), P(world.dead_notify), P(world.counting), P(world.stream), ODD_HANDLES);
        break;
    case 'Z':
        ADD(P(world.counting), P(world.dead_notify), P(world.notify), ODD_HANDLES);
        break;
    case '1':
        ADD(P(world.graph), P(world.dead_graph), P(world.captured), P(world.body), P(world.stream),
            ODD_HANDLES);
        break;
    case '2':
        ADD(P(world.task), P(world.graph), P(world.group), ODD_HANDLES);
        break;
    case '3':
        ADD(P(world.group), P(world.graph), P(world.task), ODD_HANDLES);
        break;
    case '4':
        ADD(P(world.condition), P(world.captured), ODD_HANDLES);
        break;
    case '5':
        ADD(UINT64_C(1) << 32, 0, 1, UINT64_C(3) << 32, (UINT64_C(5) << 32) + 2,
            (UINT64_C(1) << 32) + 3, UINT32_MAX, UINT64_MAX);
        break;
    case '6':
        ADD(P(world.label), P(world.labels), P(world.graph), ODD_HANDLES);
        break;
    case '7':
        ADD(P(world.labels), P(world.label), P(world.graph), ODD_HANDLES);
        break;
    case '9':
        ADD(P("/dev/null"), 0, P(""), P("/"), P("/nonexistent/x.json"), P(long_text));
        break;
    case 'O':
        ADD(P(world.key), 0, P(""), P("key"), P(long_text), P(world.dead_key), P(world.key + 1),
            P("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
        break;
    case 'F':
        ADD(world.shared, 0, 1, UINT64_MAX, world.shared ^ 1, P(world.phys));
        break;
    case 'P':
        ADD(P(world.stamp), P(world.dead_stamp), P(world.stream), ODD_HANDLES);
        break;
    case 'j':
        ADD(1, 0, 2, 8, 255, 512);
        break;
    case 'W':
        ADD(P(world.out[index]), 0);
        break;
    case 'R':
        ADD(P(world.area), 0);
        break;
    case 'X':
        ADD(P(world.area));
        break;
    case 'n':
        ADD(0, P(world.zeros));
        break;
    case 'N':
        ADD(0, P(&world));
        break;
    case 'B':
        ADD(P(world.binary), P(world.dead_binary), P(world.function), P(world.stream), ODD_HANDLES);
        break;
    case 'K':
        ADD(P(world.function), P(world.binary), P(world.stream), ODD_HANDLES);
        break;
    case 'A':
        ADD(P(world.args), P(world.function), P(world.stream), ODD_HANDLES);
        break;
    case 'V':
        ADD(P(world.input));
        break;
    case 'C':
        ADD(P(world.channel), P(world.dead_channel), P(world.dataset), ODD_HANDLES);
        break;
    case 'E':
        ADD(P(world.dataset), P(world.dead_dataset), P(world.item), ODD_HANDLES);
        break;
    case 'I':
        ADD(P(world.item), P(world.dead_item), P(world.dataset), ODD_HANDLES);
        break;
    case 'M':
        ADD(P(world.buf), P(world.dead_buf), P(world.item), ODD_HANDLES);
        break;
    case 'G':
        ADD(world.queue, 0, 1, world.queue + 1, INT_MAX, UINT32_MAX);
        break;
    case 'Q':
        ADD(P(world.attr), P(world.dead_attr), P(world.route), ODD_HANDLES);
        break;
    case 'J':
        ADD(P(&world.attr_value), 0, P(world.zeros));
        break;
    case 'T':
        ADD(P(world.route), P(world.dead_route), P(world.routes), ODD_HANDLES);
        break;
    case 'L':
        ADD(P(world.routes), P(world.dead_routes), P(world.route), ODD_HANDLES);
        break;
    case '8':
        ADD(P(world.query), P(world.dead_query), P(world.route), ODD_HANDLES);
        break;
    case 't':
        ADD(1, 0, 3, (uint64_t)-2, (uint64_t)INT_MIN);
        break;
    case 'c':
        ADD(P(&world.malloc_config), 0, P(&world.malloc_config_bad));
        break;
    case 'p':
        ADD(P(world.phys), P(world.dead_phys), P(world.stream), P(world.mapped), ODD_HANDLES);
        break;
    case 'q':
        ADD(P(&world.prop), 0, P(&world.prop_bad));
        break;
    case 'w':
        ADD(P(&world.location), 0, P(&world.location_bad));
        break;
    case 'y':
        ADD(P(world.access), 0, P(&world.access_bad));
        break;
    case 'k':
        ADD(P(world.range), P(world.mapped), 0, 1, UINT64_MAX, P(world.card), P(world.pinned),
            P(world.mapped) + 4096, P(world.range) + 2 * MIB, P(world.range) + 4095, P(world.area),
            UINT64_C(16) << 40, UINT64_C(1) << 47, UINT64_MAX - 4095);
        break;
    case 'r':
        ADD(P(world.host), P(world.host) + 16, 0, 1, UINT64_MAX, P(world.card), P(world.pinned),
            P(world.mapped), P(world.host) - 4096, P(world.host) + 4096, UINT64_MAX - 4095);
        break;
    case 'l':
        ADD(P(world.list), 0);
        break;
    case 'm':
        ADD(P(world.card), 0, 1, UINT64_MAX, P(world.card + 1), P(world.card + 4), P(world.pinned),
            P(world.pinned + 32), P(world.area), P(world.area + 1), P(world.dead_card),
            P(world.dead_pinned), P(world.other_card), P(world.pooled), P(world.dead_pooled),
            UINT64_MAX - 4095);
        if (!BLYI_WITH_TSAN) /* its shadow lies where handles point, and would be filled for hours
                              */
            ADD(P(world.stream));
        break;
    case 'h':
        ADD(P(world.stream), P(world.dead_stream), P(world.event), P(world.other_stream),
            P(world.context), ODD_HANDLES);
        break;
    case 'H':
        ADD(P(world.stream), P(world.dead_stream), P(world.event), P(world.other_stream),
            P(world.context), P(world.capturing), P(world.bound), ODD_HANDLES);
        break;
    case 'e':
        ADD(P(world.event), P(world.dead_event), P(world.stream), P(world.context), ODD_HANDLES);
        break;
    case 'x':
        ADD(P(world.context), P(world.dead_context), P(world.stream), P(world.other_context),
            ODD_HANDLES);
        break;
    case 'b':
        ADD(P(world.buffer), P(world.dead_buffer), P(world.desc), ODD_HANDLES);
        break;
    case 'a':
        ADD(P(world.desc), P(world.dead_desc), P(world.buffer), ODD_HANDLES);
        break;
    case 'g':
        ADD(P(world.config), P(world.dead_config), P(world.stream), ODD_HANDLES);
        break;
    case 's':
        ADD(P("runtime"), 0, P(""), P("/"), P("/nonexistent/x.json"), P(long_text), P("%n%s%n"),
            P("0000:01:00.0"));
        break;
    case 'S':
        ADD(P("text"), 0, P(""), P(long_text));
        break;
    case 'f':
        ADD(P((uintptr_t)nothing), 0);
        break;
    case 'z':
        ADD(4096, 0, 1, 3, 4095, 2 * MIB, 1 << 30, UINT64_C(1) << 40, UINT64_C(1) << 50,
            (UINT64_C(1) << 50) + 1, (uint64_t)SSIZE_MAX, UINT64_MAX, UINT64_MAX - 31,
            UINT64_MAX - 62);
        break;
    case 'i':
        ADD(1, 0, 2, 3, 4, 5, 6, 7, 18, 100, INT_MAX, UINT64_MAX, (uint64_t)INT_MIN, 0x100);
        break;
    case 'd':
        ADD(0, 1, 2, 63, 64, INT_MAX, UINT64_MAX, (uint64_t)INT_MIN);
        break;
    case 'u':
    case 'U':
        ADD(1, 0, 2, 8, 9, 16, 255, INT_MAX, UINT32_MAX, UINT64_MAX);
        break;
    case 'D':
        ADD(P(&world), 0, 1, UINT64_MAX);
        break;
    default:
        test_fail(__FILE__, __LINE__, "a kind of argument that is not known");
    }
}

static uint64_t call_with(void *function, const uint64_t a[ARGS_MAX])
{
    typedef uint64_t (*any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                            uint64_t, uint64_t, uint64_t);
    any fn;
    memcpy(&fn, &function, sizeof(fn));
    return fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
}

/* A failed call leaves no output behind. */
static void check_outputs(const struct row *row, const uint64_t a[ARGS_MAX], aclError code)
{
    for (size_t i = 0; row->arguments[i] != ':'; i++) {
        if (row->arguments[i] != 'o' || a[i] == 0)
            continue;
        for (size_t b = 0; b < OUT_SIZE; b++) {
            if ((unsigned char)world.out[i][b] != FILL) {
                fprintf(stderr, "%s failed with %d and wrote to argument %zu\n", report->call, code,
                        i);
                _exit(1);
            }
        }
    }
}

static void try_call(const struct row *row, void *function, const uint64_t a[ARGS_MAX])
{
    size_t used = (size_t)snprintf(report->call, sizeof(report->call), "%s(", row->name);
    for (size_t i = 0; row->arguments[i] != ':'; i++) {
        if (row->arguments[i] == 'o' && a[i] != 0)
            memset(world.out[i], FILL, OUT_SIZE);
        used += (size_t)snprintf(report->call + used, sizeof(report->call) - used, " %#llx",
                                 (unsigned long long)a[i]);
    }
    aclError code = (aclError)call_with(function, a);
    if (row->arguments[strlen(row->arguments) - 1] == 'e' && code != 0 && code != 100002)
        check_outputs(row, a, code);
    report->call[0] = '\0';
}

/* Good values, but for those that `pick` changes. */
static void good_arguments(const struct row *row, struct values values[ARGS_MAX],
                           uint64_t a[ARGS_MAX])
{
    memset(a, 0, ARGS_MAX * sizeof(a[0]));
    for (size_t i = 0; row->arguments[i] != ':'; i++) {
        values_of(row->arguments[i], i, &values[i]);
        a[i] = values[i].list[0];
    }
}

static void torture(const struct row *row)
{
    struct values values[ARGS_MAX];
    uint64_t a[ARGS_MAX];
    void *function = dlsym(RTLD_DEFAULT, row->name);
    CHECK(function != NULL);
    size_t n_args = strcspn(row->arguments, ":");
    good_arguments(row, values, a);
    try_call(row, function, a);
    for (size_t i = 0; i < n_args; i++) {
        for (size_t v = 0; v < values[i].n; v++) {
            mend_world();
            good_arguments(row, values, a);
            a[i] = values[i].list[v];
            try_call(row, function, a);
            try_call(row, function, a); /* what was freed is freed again */
        }
    }
    for (int round = 0; round < RANDOM; round++) {
        mend_world();
        good_arguments(row, values, a);
        for (size_t i = 0; i < n_args; i++)
            a[i] = values[i].list[next_random() % values[i].n];
        try_call(row, function, a);
    }
}

static void torture_in_child(const struct row *row)
{
    alarm(TEST_SECONDS);
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_PIN_LIMIT", "16MiB", 1);
    setenv("ASCEND_LOG_PRINT_TO_STDOUT", "1", 1);
    setenv("BELAY_LOG", "error", 1);
    world.area = guarded(AREA);
    for (size_t i = 0; i < ARGS_MAX; i++)
        world.out[i] = guarded(OUT_SIZE);
    build_world();
    torture(row);
    snprintf(report->call, sizeof(report->call), "%s, and then a working runtime", row->name);
    void *p = NULL;
    (void)aclrtResetDeviceForce(0);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    OK(aclrtMemset(p, 4096, 0, 4096));
    OK(aclrtFree(p));
    report->call[0] = '\0';
}

static const struct row *find_row(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static bool survives(const struct row *row)
{
    report->call[0] = '\0';
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        default_signals();
        FILE *quiet = freopen("/dev/null", "w", stdout);
        (void)quiet;
        torture_in_child(row);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    print_error("%s: %s %d in %s\n", row->name,
                !WIFSIGNALED(status)          ? "exit"
                : WTERMSIG(status) == SIGALRM ? "no end within the time limit, signal"
                                              : "signal",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                report->call[0] != '\0' ? report->call : "(no call)");
    return false;
}

static void every_function_bears_every_value(void **state)
{
    (void)state;
    size_t n_failed = 0;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const struct row *row = find_row(symbols[i]);
        if (row == NULL)
            print_error("%s has no row in this test\n", symbols[i]);
        if (row == NULL || !survives(row))
            n_failed++;
    }
    assert_int_equal(n_failed, 0);
}

/* ── In the child of a fork ───────────────────────────────────────────────────────────────── */

#define BUSY_THREADS 3

/* What must refuse there, with the arguments called good: 507899, and two as the runtime has them.
 */
static const struct {
    const char *name;
    aclError code;
} refused_in_fork[] = {
    {"aclrtSetDevice", 507033},
    {"aclrtCreateContext", 507033},
    {"aclrtMalloc", 507899},
    {"aclrtFree", 507899},
    {"aclrtMallocHost", 507899},
    {"aclrtFreeHost", 507899},
    {"aclrtHostUnregister", 507899},
    {"aclrtReleaseMemAddress", 507899},
    {"aclrtFreePhysical", 507899},
    {"aclrtUnmapMem", 507899},
    {"aclrtMemSetAccess", 507899},
    {"aclrtMemGetAccess", 507899},
    {"aclrtMemRetainAllocationHandle", 507899},
    {"aclrtMemGetAllocationPropertiesFromHandle", 507899},
    {"aclrtMemGetAddressRange", 507899},
    {"aclrtPointerGetAttributes", 507899},
    {"aclrtGetMemInfo", 507899},
    {"aclrtGetMemUsageInfo", 507899},
    {"aclrtMemcpy", 507899},
    {"aclrtMemset", 507899},
    {"aclrtMemPoolCreate", 507899},
    {"aclrtMemPoolDestroy", 507899},
    {"aclrtMemPoolFreeAsync", 507899},
    {"aclrtMemPoolGetAttr", 507899},
    {"aclrtMemPoolMallocAsync", 507899},
    {"aclrtMemPoolSetAttr", 507899},
    {"aclrtMemPoolTrimTo", 507899},
};

static struct {
    char *card, *pinned, *mapped, *copy;
    atomic_bool stop;
} kept;

/* Holds the locks that a child must not wait for. */
static void *keep_busy(void *arg)
{
    (void)arg;
    OK(aclrtSetDevice(0));
    while (!atomic_load(&kept.stop)) {
        void *a = NULL, *b = NULL, *range = NULL;
        aclrtDrvMemHandle handle = NULL;
        OK(aclrtMalloc(&a, 4096, HUGE_FIRST));
        OK(aclrtMallocHost(&b, 4096));
        OK(aclrtReserveMemAddress(&range, 2 * MIB, 0, NULL, 1));
        OK(aclrtMallocPhysical(&handle, 2 * MIB, &world.prop, 0));
        OK(aclrtMapMem(range, 2 * MIB, 0, handle, 0));
        OK(aclrtUnmapMem(range));
        OK(aclrtFreePhysical(handle));
        OK(aclrtReleaseMemAddress(range));
        OK(aclrtFreeHost(b));
        OK(aclrtFree(a));
    }
    return NULL;
}

static void call_in_fork(const struct row *row)
{
    struct values values[ARGS_MAX];
    uint64_t a[ARGS_MAX];
    void *function = dlsym(RTLD_DEFAULT, row->name);
    alarm(TEST_SECONDS);
    good_arguments(row, values, a);
    snprintf(report->call, sizeof(report->call), "%s", row->name);
    aclError code = (aclError)call_with(function, a);
    for (size_t i = 0; i < sizeof(refused_in_fork) / sizeof(refused_in_fork[0]); i++) {
        if (strcmp(refused_in_fork[i].name, row->name) == 0 && code != refused_in_fork[i].code) {
            fprintf(stderr, "%s in the child of a fork returned %d\n", row->name, code);
            _exit(1);
        }
    }
    for (size_t i = 0; i < strcspn(row->arguments, ":"); i++) {
        for (size_t v = 0; v < values[i].n; v++) {
            good_arguments(row, values, a);
            a[i] = values[i].list[v];
            try_call(row, function, a);
        }
    }
    for (char **block = &kept.card; block <= &kept.mapped; block++) { /* the very blocks that are */
        good_arguments(row, values, a);                               /* looked at later */
        a[0] = P(*block);
        if (strchr("mkr", row->arguments[0]) != NULL)
            try_call(row, function, a);
    }
}

/* Those for which the first value of each kind is no good one. */
static void call_exactly_in_fork(void)
{
    void *out;
    aclrtDrvMemHandle handle;
    uint32_t is_all;
    CHECK_ACL(aclrtHostRegister(world.area, 4096, ACL_HOST_REGISTER_MAPPED, &out), 507899);
    CHECK_ACL(aclrtHostGetDevicePointer(world.host, &out, 0), 507899);
    CHECK_ACL(aclrtReserveMemAddress(&out, 2 * MIB, 0, NULL, 1), 507899);
    CHECK_ACL(aclrtMallocPhysical(&handle, 2 * MIB, &world.prop, 0), 507899);
    CHECK_ACL(aclrtMapMem(world.range, 2 * MIB, 0, world.phys, 0), 507899);
    CHECK_ACL(aclrtUnmapMem(kept.mapped), 507899);
    CHECK_ACL(aclrtFree(kept.card), 507899);
    CHECK_ACL(aclrtFreeHost(kept.pinned), 507899);
    CHECK_ACL(aclrtCheckMemType((void **)&kept.card, 1, ACL_RT_MEM_TYPE_DEV, &is_all, 0), 507899);
    CHECK_MESSAGE("was forked");
}

static bool bears_a_fork(const struct row *row)
{
    report->call[0] = '\0';
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        call_exactly_in_fork();
        call_in_fork(row);
        /* With the destructors once; not under ASan, whose search for leaks at exit cannot see what
         * threads held that the child does not have. */
        if (!BLYI_WITH_ASAN && strcmp(row->name, "aclrtFree") == 0)
            exit(0);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    fprintf(stderr, "child of a fork: %s %d in %s\n", WIFSIGNALED(status) ? "signal" : "exit",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), report->call);
    return false;
}

static void check_kept(const char *block, size_t size, char value)
{
    OK(aclrtMemcpy(kept.copy, size, block, size, ACL_MEMCPY_DEFAULT));
    for (size_t i = 0; i < size; i++)
        CHECK_EQ(kept.copy[i], value);
}

static void fork_body(void)
{
    pthread_t threads[BUSY_THREADS];
    size_t n_failed = 0;
    alarm(0);
    world.area = guarded(AREA);
    for (size_t i = 0; i < ARGS_MAX; i++)
        world.out[i] = guarded(OUT_SIZE);
    build_world();
    kept.copy = malloc(16 * MIB);
    OK(aclrtMalloc((void **)&kept.card, 16 * MIB, HUGE_FIRST));
    OK(aclrtMallocHost((void **)&kept.pinned, MIB));
    kept.mapped = world.mapped;
    OK(aclrtMemset(kept.card, 16 * MIB, 0x5a, 16 * MIB));
    OK(aclrtMemset(kept.mapped, 2 * MIB, 0x77, 2 * MIB));
    memset(kept.pinned, 0x33, MIB);
    OK(aclrtHostRegister(world.host, 2 * MIB, 0, (void **)world.out[0]));
    for (size_t i = 0; i < BUSY_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const struct row *row = find_row(symbols[i]);
        n_failed += row == NULL || !bears_a_fork(row);
    }
    atomic_store(&kept.stop, true);
    for (size_t i = 0; i < BUSY_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    check_kept(kept.card, 16 * MIB, 0x5a);
    check_kept(kept.mapped, 2 * MIB, 0x77);
    check_kept(kept.pinned, MIB, 0x33);
    OK(aclrtFree(kept.card));
    OK(aclrtFreeHost(kept.pinned));
    OK(aclrtUnmapMem(kept.mapped));
    OK(aclrtHostUnregister(world.host));
    CHECK_EQ(n_failed, 0);
}

TEST(every_function_answers_in_a_forked_child)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    fork_body();
}

TEST(nor_does_a_forked_child_punch_what_is_shared)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_RESIDENT", "0", 1);
    fork_body();
}

/* With a name: only that function. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_answers_in_a_forked_child),
        cmocka_unit_test(nor_does_a_forked_child_punch_what_is_shared),
        cmocka_unit_test(every_function_bears_every_value),
    };
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return 1;
    if (argc > 1) {
        const struct row *row = find_row(argv[1]);
        return row != NULL && survives(row) ? 0 : 1;
    }
    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel binaries, argument lists and launches. */
#include "acl_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static aclrtBinHandle binary;
static aclrtStream stream;
static uint32_t *value; /* one granule of card memory */

static void open_all(void)
{
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtBinaryLoadFromFile(TEST_KERNELS, NULL, &binary));
    OK(aclrtMalloc((void **)&value, 64 * KIB, HUGE_FIRST));
    OK(aclrtMemset(value, 64 * KIB, 0, 64 * KIB));
}

static aclrtFuncHandle function(const char *name)
{
    aclrtFuncHandle found = NULL;
    OK(aclrtBinaryGetFunction(binary, name, &found));
    return found;
}

static aclrtArgsHandle args_of(aclrtFuncHandle func, const void *pointer)
{
    aclrtArgsHandle args = NULL;
    aclrtParamHandle param;
    OK(aclrtKernelArgsInit(func, &args));
    OK(aclrtKernelArgsAppend(args, &pointer, sizeof(pointer), &param));
    OK(aclrtKernelArgsFinalize(args));
    return args;
}

static void launch(const char *name, void *pointer)
{
    aclrtFuncHandle func = function(name);
    OK(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args_of(func, pointer), NULL));
}

static uint32_t read_value(void)
{
    uint32_t got;
    OK(aclrtMemcpy(&got, sizeof(got), value, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST));
    return got;
}

TEST(runs_in_stream_order)
{
    open_all();
    for (int i = 0; i < 3000; i++)
        launch("add_one", value);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 3000);
    OK(aclrtBinaryUnLoad(binary));
}

TEST(every_block_runs_once)
{
    open_all();
    aclrtFuncHandle func = function("count_blocks");
    OK(aclrtLaunchKernelWithConfig(func, 40, stream, NULL, args_of(func, value), NULL));
    OK(aclrtSynchronizeStream(stream));
    uint32_t got[41];
    OK(aclrtMemcpy(got, sizeof(got), value, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < 40; i++)
        CHECK_EQ(got[i], 40);
    CHECK_EQ(got[40], 0);
}

TEST(the_argument_block_is_a_c_structure)
{
    open_all();
    uint8_t one = 1;
    uint16_t two = 2;
    uint32_t four = 4, *buffer = NULL;
    aclrtArgsHandle args;
    aclrtParamHandle param, place;
    aclrtFuncHandle func = function("layout");
    OK(aclrtKernelArgsInit(func, &args));
    OK(aclrtKernelArgsAppend(args, &one, sizeof(one), &param));
    OK(aclrtKernelArgsAppend(args, &two, sizeof(two), &param));
    OK(aclrtKernelArgsAppend(args, &four, sizeof(four), &param));
    OK(aclrtKernelArgsAppend(args, &value, sizeof(value), &param));
    OK(aclrtKernelArgsAppendPlaceHolder(args, &place));
    CHECK_ACL(aclrtKernelArgsGetPlaceHolderBuffer(args, param, 8, (void **)&buffer), 107000);
    OK(aclrtKernelArgsGetPlaceHolderBuffer(args, place, 2 * sizeof(uint32_t), (void **)&buffer));
    buffer[0] = 77;
    buffer[1] = 88;
    CHECK_ACL(aclrtKernelArgsAppend(args, &one, sizeof(one), &param), 207000);
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args, NULL), 107000);
    OK(aclrtKernelArgsFinalize(args));
    CHECK_ACL(aclrtKernelArgsAppend(args, &one, sizeof(one), &param), 207000);
    OK(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args, NULL));
    /* The launch has copied it. */
    buffer[0] = 0;
    OK(aclrtSynchronizeStream(stream));
    uint64_t got[6];
    OK(aclrtMemcpy(got, sizeof(got), value, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(got[0], 1);
    CHECK_EQ(got[1], 2);
    CHECK_EQ(got[2], 4);
    CHECK_EQ(got[3], 77);
    CHECK_EQ(got[4], 88);
    CHECK_EQ(got[5], 0);
}

TEST(a_parameter_can_be_updated)
{
    open_all();
    uint32_t *other = value + 1;
    aclrtArgsHandle args;
    aclrtParamHandle param;
    aclrtFuncHandle func = function("add_one");
    OK(aclrtKernelArgsInit(func, &args));
    OK(aclrtKernelArgsAppend(args, &value, sizeof(value), &param));
    OK(aclrtKernelArgsFinalize(args));
    OK(aclrtKernelArgsParaUpdate(args, param, &other, sizeof(other)));
    CHECK_ACL(aclrtKernelArgsParaUpdate(args, param, &other, 4), 107000);
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args, NULL), 107000);
    OK(aclrtKernelArgsFinalize(args));
    OK(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args, NULL));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 0);
    OK(aclrtMemcpy(value, 4, other, 4, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK_EQ(read_value(), 1);
}

TEST(a_list_has_limits)
{
    open_all();
    static char big[70000];
    aclrtArgsHandle args;
    aclrtParamHandle param;
    OK(aclrtKernelArgsInit(function("add_one"), &args));
    CHECK_ACL(aclrtKernelArgsAppend(args, big, sizeof(big), &param), 107000);
    OK(aclrtKernelArgsAppend(args, big, 65536, &param));
    CHECK_ACL(aclrtKernelArgsAppend(args, big, 1, &param), 107000);
    OK(aclrtKernelArgsInit(function("add_one"), &args));
    for (int i = 0; i < 128; i++)
        OK(aclrtKernelArgsAppend(args, big, 1, &param));
    CHECK_ACL(aclrtKernelArgsAppend(args, big, 1, &param), 107000);
}

/* The program's own memory for list and arguments. */
TEST(a_list_in_memory_of_the_program)
{
    uint64_t list_memory[1024], args_memory[4];
    aclrtArgsHandle args = list_memory;
    aclrtParamHandle first, second;
    size_t list_size = 0, args_size = 0;
    open_all();
    aclrtFuncHandle func = function("add_one");
    CHECK_ACL(aclrtKernelArgsAppend(args, &value, 8, &first), 107017); /* not yet a list */
    OK(aclrtKernelArgsGetHandleMemSize(func, &list_size));
    CHECK(list_size > 0 && list_size <= sizeof(list_memory));
    CHECK_ACL(aclrtKernelArgsGetMemSize(func, 0, &args_size), 107000);
    CHECK_ACL(aclrtKernelArgsGetMemSize(func, 65537, &args_size), 107000);
    OK(aclrtKernelArgsGetMemSize(func, 12, &args_size));
    CHECK_EQ(args_size, 16);
    CHECK_ACL(aclrtKernelArgsInitByUserMem(func, args, ANY_ADDRESS, 16), 107000);
    CHECK_ACL(aclrtKernelArgsInitByUserMem(func, (char *)args + 4, args_memory, 16), 107000);
    CHECK_ACL(aclrtKernelArgsInitByUserMem(func, args, args_memory, 0), 107000);
    for (int i = 1; i <= 3; i++) { /* the same memory again and again */
        OK(aclrtKernelArgsInitByUserMem(func, args, args_memory, 16));
        OK(aclrtKernelArgsAppend(args, &value, sizeof(value), &first));
        CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args, NULL), 107000);
        OK(aclrtKernelArgsAppend(args, &value, sizeof(value), &second));
        CHECK_ACL(aclrtKernelArgsAppend(args, &value, 1, &second), 107000);
        CHECK_MESSAGE("this argument block has at most 16");
        CHECK(args_memory[0] == (uint64_t)(uintptr_t)value);
        OK(aclrtKernelArgsFinalize(args));
        OK(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args, NULL));
        args_memory[0] = 0; /* a launch has its copy */
        OK(aclrtSynchronizeStream(stream));
        CHECK_EQ(read_value(), (uint32_t)i);
    }
}

TEST(variables_and_sizes_of_a_binary)
{
    uint32_t *step = NULL, seven = 7;
    size_t size = 0, aic_size = 0, aiv_size = 0;
    void *aic = NULL, *aiv = NULL;
    open_all();
    OK(aclrtBinaryGetGlobal(binary, "step_width", (void **)&step, &size));
    CHECK_EQ(size, 4);
    OK(aclrtBinaryGetGlobal(binary, "step_width", NULL, &size));
    launch("add_step", value);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 1);
    OK(aclrtMemcpy(step, 4, &seven, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    launch("add_step", value);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 8);
    CHECK_ACL(aclrtBinaryGetGlobal(binary, "step_width", NULL, NULL), 100000);
    CHECK_ACL(aclrtBinaryGetGlobal(binary, "no_such_thing", NULL, &size), 507000);
    CHECK_ACL(aclrtBinaryGetGlobal(binary, "hidden", NULL, &size), 507000);
    CHECK_ACL(aclrtBinaryGetGlobal(binary, "add_step", NULL, &size), 507000); /* a function */
    CHECK_ACL(aclrtBinaryGetGlobal(binary, "stdout", NULL, &size), 507000);   /* not its own */
    CHECK_MESSAGE("no variable stdout");
    OK(aclrtGetFunctionAddr(function("add_step"), &aic, &aiv));
    CHECK(aic != NULL && aic == aiv);
    OK(aclrtGetFunctionSize(function("add_step"), &aic_size, &aiv_size));
    CHECK(aic_size > 0 && aic_size < 4096 && aic_size == aiv_size);
    aclrtFuncHandle func = function("add_step");
    OK(aclrtBinaryUnLoad(binary));
    CHECK_ACL(aclrtGetFunctionSize(func, &aic_size, &aiv_size), 107017);
    CHECK_ACL(aclrtBinaryGetGlobal(binary, "step_width", NULL, &size), 107017);
}

static uint32_t overflowed(void)
{
    uint32_t words[16];
    OK(aclrtMemset(value + 64, 64, 0xee, 64));
    OK(aclrtGetOverflowStatus(value + 64, 64, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(words, 64, value + 64, 64, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 1; i < 16; i++)
        CHECK_EQ(words[i], 0);
    return words[0];
}

static void square(float number)
{
    OK(aclrtMemcpy(value, 4, &number, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    launch("square", value);
    OK(aclrtSynchronizeStream(stream));
}

TEST(overflow_is_told_where_it_is_looked_for)
{
    uint32_t words[16];
    open_all();
    square(1e30f);
    CHECK_EQ(overflowed(), 0); /* the switch is off */
    OK(aclrtSetStreamOverflowSwitch(stream, 1));
    square(3);
    square(1e-30f); /* too small is none */
    CHECK_EQ(overflowed(), 0);
    square(1e30f);
    square(3);
    CHECK_EQ(overflowed(), 1); /* stays until it is cleared */
    CHECK_EQ(overflowed(), 1);
    OK(aclrtResetOverflowStatus(stream));
    CHECK_EQ(overflowed(), 0);
    OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
    square(1e30f);
    CHECK_EQ(overflowed(), 0);
    OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
    square(1e30f);
    OK(aclrtGetFloatOverflowStatus(value + 64, 64, stream));
    OK(aclrtNpuGetFloatOverFlowStatus(value + 80, 64, 0, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(words, 64, value + 64, 64, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(words[0], 1);
    OK(aclrtMemcpy(words, 64, value + 80, 64, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(words[0], 1);
    OK(aclrtNpuClearFloatOverFlowStatus(0, stream));
    CHECK_EQ(overflowed(), 0);
    square(1e30f);
    OK(aclrtResetFloatOverflowStatus(stream));
    CHECK_EQ(overflowed(), 0);
    square(1e30f);
    OK(aclrtCreateContext(&(aclrtContext){NULL}, 0)); /* another one has a status of its own */
    OK(aclrtCreateStream(&stream));
    CHECK_EQ(overflowed(), 0);
    CHECK_ACL(aclrtGetOverflowStatus(words, 64, stream), 107000);
    CHECK_ACL(aclrtGetOverflowStatus(value, 3, stream), 107000);
    CHECK_ACL(aclrtGetFloatOverflowStatus(value, 32, stream), 107000);
    CHECK_ACL(aclrtGetFloatOverflowStatus(NULL, 64, stream), 100000);
}

TEST(a_binary_may_say_what_parameters_a_kernel_has)
{
    static const size_t offsets[] = {0, 2, 4, 8, 16}, sizes[] = {1, 2, 4, 8, 8};
    size_t n = 99, offset = 99, size = 99;
    open_all();
    OK(aclrtFunctionGetParamCount(function("layout"), &n));
    CHECK_EQ(n, 5);
    for (size_t i = 0; i < n; i++) {
        OK(aclrtFunctionGetParamInfo(function("layout"), i, &offset, &size));
        CHECK(offset == offsets[i] && size == sizes[i]);
    }
    CHECK_ACL(aclrtFunctionGetParamInfo(function("layout"), 5, &offset, &size), 107000);
    CHECK_ACL(aclrtFunctionGetParamCount(function("count_blocks"), &n), 507000);
    CHECK_MESSAGE("no variable count_blocks_params");
    CHECK_ACL(aclrtFunctionGetParamCount(function("trap"), &n), 107000);
    CHECK_ACL(aclrtFunctionGetParamCount(NULL, &n), 100000);
    CHECK_ACL(aclrtFunctionGetParamCount(binary, &n), 107017);
    OK(aclrtFunctionGetAvailDynUbufPerBlock(function("layout"), 0, &size));
    CHECK_EQ(size, 0);
    CHECK_ACL(aclrtFunctionGetAvailDynUbufPerBlock(function("layout"), 1, &size), 107000);
}

TEST(a_launch_with_a_pointer_to_each_argument)
{
    uint8_t one = 1;
    uint16_t two = 2;
    uint32_t four = 4, *placed = value + 256, pair[2] = {77, 88};
    void *args[] = {&one, &two, &four, &value, &placed};
    uint64_t got[6];
    open_all();
    placed = value + 256;
    OK(aclrtMemcpy(placed, sizeof(pair), pair, sizeof(pair), ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtLaunchKernelWithArgsArray(function("layout"), 1, stream, NULL, args));
    four = 0; /* the launch has its copy */
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(got, sizeof(got), value, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(got[0] == 1 && got[1] == 2 && got[2] == 4 && got[3] == 77 && got[4] == 88);
    args[2] = NULL;
    CHECK_ACL(aclrtLaunchKernelWithArgsArray(function("layout"), 1, stream, NULL, args), 107000);
    CHECK_MESSAGE("args[2] is NULL");
    args[2] = ANY_ADDRESS;
    CHECK_ACL(aclrtLaunchKernelWithArgsArray(function("layout"), 1, stream, NULL, args), 107000);
    CHECK_ACL(aclrtLaunchKernelWithArgsArray(function("layout"), 1, stream, NULL, NULL), 107000);
    CHECK_ACL(aclrtLaunchKernelWithArgsArray(function("count_blocks"), 1, stream, NULL, args),
              507000);
    CHECK_ACL(aclrtLaunchKernelWithArgsArray(NULL, 1, stream, NULL, args), 100000);
    OK(aclrtSynchronizeStream(stream));
}

TEST(arguments_in_card_or_host_memory)
{
    open_all();
    aclrtFuncHandle func = function("add_one");
    char *on_card = (char *)value + 4096;
    OK(aclrtMemcpy(on_card, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtLaunchKernel(func, 1, on_card, 8, stream));
    OK(aclrtLaunchKernelV2(func, 1, on_card, 8, NULL, stream));
    CHECK_ACL(aclrtLaunchKernel(func, 1, &value, 8, stream), 107000);
    OK(aclrtLaunchKernelWithHostArgs(func, 1, stream, NULL, &value, 8, NULL, 0));
    /* A placeholder in host arguments: the pointer leads into the block itself. */
    struct {
        void *pointer;
        uint32_t count;
    } in_place = {NULL, 41};
    aclrtPlaceHolderInfo place = {0, 8};
    OK(aclrtLaunchKernelWithHostArgs(func, 1, stream, NULL, &in_place, sizeof(in_place), &place,
                                     1));
    place.dataOffset = 16;
    CHECK_ACL(aclrtLaunchKernelWithHostArgs(func, 1, stream, NULL, &in_place, sizeof(in_place),
                                            &place, 1),
              107000);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 3);
    CHECK_EQ(in_place.count, 41);
}

TEST(binaries_and_functions_are_checked)
{
    open_all();
    aclrtBinHandle other = NULL;
    aclrtFuncHandle func = function("add_one"), again = function("add_one");
    CHECK(func == again);
    CHECK_ACL(aclrtBinaryLoadFromFile("/nowhere/x.o", NULL, &other), 107000);
    CHECK_MESSAGE("No such file");
    CHECK_ACL(aclrtBinaryLoadFromFile("/proc/self/status", NULL, &other), 107000);
    CHECK_MESSAGE("no kernel binary");
    CHECK(other == NULL);
    CHECK_ACL(aclrtBinaryGetFunction(binary, "no_such_kernel", &func), 507000);
    CHECK_MESSAGE("no function no_such_kernel");
    CHECK_ACL(aclrtBinaryGetFunction(func, "add_one", &again), 107017);
    CHECK_ACL(aclrtBinaryGetFunction(NULL, "add_one", &again), 100000);
    char name[32];
    OK(aclrtGetFunctionName(func, sizeof(name), name));
    CHECK(strcmp(name, "add_one") == 0);
    CHECK_ACL(aclrtGetFunctionName(func, 7, name), 107000);
    OK(aclrtFunctionGetBinary(func, &other));
    CHECK(other == binary);
    OK(aclrtBinaryUnLoad(binary));
    CHECK_ACL(aclrtBinaryUnLoad(binary), 107017);
    CHECK_ACL(aclrtLaunchKernelWithHostArgs(func, 1, stream, NULL, &value, 8, NULL, 0), 107017);
}

TEST(unload_waits_for_no_launch)
{
    struct hold hold;
    open_all();
    hold_stream(&hold, stream);
    launch("add_one", value);
    OK(aclrtBinaryUnLoad(binary));
    let_go(&hold);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 1);
}

TEST(a_binary_from_memory)
{
    open_all();
    int fd = open(TEST_KERNELS, O_RDONLY);
    struct stat info;
    CHECK(fd >= 0 && fstat(fd, &info) == 0);
    size_t size = (size_t)info.st_size;
    char *data = malloc(size);
    CHECK(read(fd, data, size) == info.st_size);
    close(fd);
    aclrtBinaryLoadOption cpu = {.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE,
                                 .value.cpuKernelMode = 2};
    aclrtBinaryLoadOptions options = {&cpu, 1};
    aclrtBinHandle from_data = NULL;
    aclrtFuncHandle func = NULL;
    OK(aclrtBinaryLoadFromData(data, size, &options, &from_data));
    CHECK_ACL(aclrtBinaryLoadFromData("garbage", 7, NULL, &binary), 107000);
    OK(aclrtRegisterCpuFunc(from_data, "add_one", "AddOne", &func));
    CHECK_ACL(aclrtRegisterCpuFunc(binary, "add_one", "AddOne", &func), 107000);
    OK(aclrtLaunchKernelWithHostArgs(func, 1, stream, NULL, &value, 8, NULL, 0));
    aclrtBinary described = aclrtCreateBinary(data, size);
    CHECK(described != NULL);
    OK(aclrtBinaryLoad(described, &from_data));
    OK(aclrtDestroyBinary(described));
    free(data);
    OK(aclrtBinaryGetFunction(from_data, "add_one", &func));
    OK(aclrtLaunchKernelWithHostArgs(func, 1, stream, NULL, &value, 8, NULL, 0));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 2);
    cpu.value.cpuKernelMode = 1;
    CHECK_ACL(aclrtBinaryLoadFromData("garbage", 7, &options, &binary), 107000);
}

TEST(launches_are_checked)
{
    open_all();
    aclrtFuncHandle func = function("add_one");
    aclrtArgsHandle args = args_of(func, value);
    aclrtLaunchKernelAttr attrs[2] = {{.id = ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE}};
    aclrtLaunchKernelCfg cfg = {attrs, 1};
    CHECK_ACL(aclrtLaunchKernelWithConfig(NULL, 1, stream, NULL, args, NULL), 100000);
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 0, stream, NULL, args, NULL), 100000);
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, NULL, NULL), 100000);
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args, value), 100000);
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 70000, stream, NULL, args, NULL), 107000);
    CHECK_ACL(aclrtLaunchKernelV2(func, 0, value, 8, NULL, stream), 107000);
    OK(aclrtLaunchKernelWithConfig(func, 1, stream, &cfg, args, NULL));
    attrs[0].value.engineType = 2;
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, &cfg, args, NULL), 107000);
    attrs[0] =
        (aclrtLaunchKernelAttr){.id = ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE, .value.schemMode = 3};
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, &cfg, args, NULL), 107000);
    attrs[0] = (aclrtLaunchKernelAttr){.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT, .value.timeout = 9};
    attrs[1] = (aclrtLaunchKernelAttr){.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US};
    cfg.numAttrs = 2;
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, &cfg, args, NULL), 107000);
    cfg.attrs = NULL;
    CHECK_ACL(aclrtLaunchKernelWithConfig(func, 1, stream, &cfg, args, NULL), 107000);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 1);
}

/* Recorded from the card: clients.md, fact 10. */
TEST(continue_on_failure_gives_2_and_507035)
{
    open_all();
    launch("add_one", value);
    launch("trap", value);
    launch("add_one", value);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_MESSAGE("kernel trap faulted on a vector core in block 0 of 1");
    CHECK_EQ(read_value(), 2);
    OK(aclrtSynchronizeStream(stream));
}

TEST(stop_on_failure_gives_1_and_507035)
{
    aclrtStream other;
    struct hold hold;
    open_all();
    OK(aclrtCreateStream(&other));
    OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    hold_stream(&hold, stream); /* once stopped it takes no work any more */
    launch("add_one", value);
    launch("trap", value);
    launch("add_one", value);
    let_go(&hold);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_EQ(read_value(), 1);
    /* All streams of the context have stopped, and stay so. */
    CHECK_ACL(aclrtSynchronizeStream(other), 507035);
    CHECK_ACL(aclrtMemsetAsync(value, 4, 0, 4, other), 507035);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_ACL(aclrtSynchronizeDevice(), 507035);
    aclrtStream late;
    OK(aclrtCreateStream(&late));
    CHECK_ACL(aclrtSynchronizeStream(late), 507035);
    /* Other contexts go on. */
    aclrtContext context;
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtMemsetAsync(value, 4, 5, 4, NULL));
    OK(aclrtSynchronizeStream(NULL));
    CHECK_EQ(read_value(), 0x05050505);
}

TEST(a_failure_mode_is_set_once)
{
    open_all();
    aclrtStream device_only;
    aclrtStreamAttrValue attr = {.failureMode = 1};
    OK(aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE));
    CHECK_ACL(aclrtSetStreamFailureMode(stream, 2), 107000);
    OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    CHECK_ACL(aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE), 207000);
    OK(aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE));
    CHECK_ACL(aclrtSetStreamAttribute(NULL, ACL_STREAM_ATTR_FAILURE_MODE, &attr), 100000);
    attr.failureMode = 0;
    OK(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &attr));
    CHECK_EQ(attr.failureMode, 1);
    OK(aclrtCreateStreamWithConfig(&device_only, 0, ACL_STREAM_DEVICE_USE_ONLY));
    CHECK_ACL(aclrtSetStreamFailureMode(device_only, 1), 207000);
    CHECK_ACL(aclrtSetStreamFailureMode(ANY_ADDRESS, 1), 107017);
}

static void wait_until_it_runs(void)
{
    while (read_value() != 1)
        usleep(1000);
}

TEST(stop_ends_the_running_kernel_alone)
{
    aclrtStream device_only;
    aclrtFuncHandle forever;
    open_all();
    forever = function("forever");
    OK(aclrtCreateStreamWithConfig(&device_only, 0, ACL_STREAM_DEVICE_USE_ONLY));
    OK(aclrtLaunchKernelWithConfig(forever, 1, device_only, NULL, args_of(forever, value), NULL));
    wait_until_it_runs();
    OK(aclrtStreamStop(device_only));
    CHECK_ACL(aclrtSynchronizeStream(device_only), 507000);
    OK(aclrtSynchronizeStream(device_only));
    /* The queue behind it is kept. */
    OK(aclrtMemset(value, 4, 0, 4));
    launch("forever", value);
    launch("add_one", value);
    wait_until_it_runs();
    OK(aclrtStreamStop(stream));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507000);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 2);
    CHECK_ACL(aclrtStreamStop(NULL), 100000);
}

TEST(abort_ends_and_drops)
{
    open_all();
    launch("forever", value);
    launch("add_one", value);
    wait_until_it_runs();
    OK(aclrtStreamAbort(stream));
    CHECK_EQ(read_value(), 1);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    OK(aclrtSynchronizeStream(stream));
    launch("add_one", value);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 2);
    /* With nothing to end there is nothing to tell. */
    OK(aclrtStreamAbort(stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_ACL(aclrtStreamAbort(NULL), 100000);
    aclrtContext context;
    OK(aclrtCreateContext(&context, 0));
    CHECK_ACL(aclrtStreamAbort(stream), 107003);
}

/* The sample of the card's vendor, as one run. */
TEST(the_recorded_sequence)
{
    aclrtStream stopped, aborted;
    open_all();
    launch("add_one", value);
    launch("trap", value);
    launch("add_one", value);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_EQ(read_value(), 2);
    OK(aclrtMemset(value, 4, 0, 4));
    OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    launch("add_one", value);
    launch("trap", value);
    aclrtFuncHandle func = function("add_one"), forever = function("forever");
    (void)aclrtLaunchKernelWithConfig(func, 1, stream, NULL, args_of(func, value), NULL);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_EQ(read_value(), 1);
    OK(aclrtCreateStreamWithConfig(&stopped, 0, ACL_STREAM_DEVICE_USE_ONLY));
    (void)aclrtLaunchKernelWithConfig(forever, 1, stopped, NULL, args_of(forever, value), NULL);
    OK(aclrtStreamStop(stopped));
    CHECK_ACL(aclrtSynchronizeStream(stopped), 507000);
    OK(aclrtCreateStream(&aborted));
    (void)aclrtLaunchKernelWithConfig(forever, 1, aborted, NULL, args_of(forever, value), NULL);
    OK(aclrtStreamAbort(aborted));
    CHECK_ACL(aclrtSynchronizeStream(aborted), 507035);
    OK(aclrtFree(value));
    OK(aclrtDestroyStreamForce(stopped));
    OK(aclrtDestroyStreamForce(aborted));
    OK(aclrtDestroyStreamForce(stream));
    OK(aclrtResetDeviceForce(0));
}

static struct sleeper waiter;

static void *wait_for_stream(void *arg)
{
    aclError *code = arg;
    sleeper_begins(&waiter);
    *code = aclrtSynchronizeStream(stream);
    return NULL;
}

static aclError what_a_waiter_gets(bool of_card)
{
    pthread_t thread;
    aclError code = -1;
    open_all();
    launch("forever", value);
    wait_until_it_runs();
    CHECK(pthread_create(&thread, NULL, wait_for_stream, &code) == 0);
    until_it_sleeps(&waiter);
    if (of_card)
        OK(aclrtDeviceTaskAbort(0, 0));
    else
        OK(aclrtStreamAbort(stream));
    pthread_join(thread, NULL);
    return code;
}

TEST(waiters_hear_of_an_abort)
{
    CHECK_EQ(what_a_waiter_gets(false), 107023);
}

static int stages;
static int32_t note_stage(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout,
                          void *args)
{
    CHECK_EQ(device, 0);
    (void)timeout;
    stages = stages * 10 + (int)stage + 1;
    return args != NULL ? 1 : 0;
}

TEST(waiters_hear_of_a_card_abort)
{
    OK(aclrtSetDeviceTaskAbortCallback("mine", note_stage, NULL));
    CHECK_ACL(aclrtSetDeviceTaskAbortCallback("mine", note_stage, NULL), 107000);
    CHECK_EQ(what_a_waiter_gets(true), 107022);
    CHECK_EQ(stages, 12);
    /* Nothing is left of it. */
    OK(aclrtSynchronizeStream(stream));
    launch("add_one", value);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 2);
    CHECK_ACL(aclrtDeviceTaskAbort(7, 0), 107001);
    CHECK_ACL(aclrtDeviceTaskAbort(0, 2160001), 107000);
    OK(aclrtSetDeviceTaskAbortCallback("refuses", note_stage, &stages));
    CHECK_ACL(aclrtDeviceTaskAbort(0, 0), 107035);
    OK(aclrtSetDeviceTaskAbortCallback("refuses", NULL, NULL));
    CHECK_ACL(aclrtSetDeviceTaskAbortCallback("refuses", NULL, NULL), 107000);
}

TEST(a_card_abort_ends_a_stopped_context)
{
    open_all();
    OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    launch("trap", value);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    OK(aclrtDeviceTaskAbort(0, 0));
    launch("add_one", value);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 1);
}

TEST(faults_name_address_and_allocation)
{
    open_all();
    aclrtFuncHandle func = function("wild_write");
    aclrtLaunchKernelAttr attr = {.id = ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE,
                                  .value.engineType = ACL_RT_ENGINE_TYPE_AIC};
    aclrtLaunchKernelCfg cfg = {&attr, 1};
    void *freed;
    OK(aclrtMalloc(&freed, 4 * MIB, HUGE_FIRST));
    OK(aclrtFree(freed));
    OK(aclrtLaunchKernelWithConfig(func, 1, stream, &cfg, args_of(func, freed), NULL));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507015);
    CHECK_MESSAGE("freed");
    launch("wild_write", (void *)8);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_MESSAGE("SIGSEGV at 0x8 by the code at wild_write");
    /* An address outside what programs can have. */
    launch("wild_write", (void *)0xabcdef0123456789u);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    launch("add_one", value);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_value(), 1);
}

TEST(many_faults)
{
    open_all();
    for (int i = 0; i < 300; i++) {
        launch("trap", value);
        launch("add_one", value);
        if (i % 10 == 0)
            CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    }
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_EQ(read_value(), 300);
}

static struct {
    uint32_t n, stream, device, code, thread, length;
    aclrtFuncHandle func;
    void *pointer;
} told;

static void note_exception(aclrtExceptionInfo *info)
{
    told.n++;
    told.stream = aclrtGetStreamIdFromExceptionInfo(info);
    told.device = aclrtGetDeviceIdFromExceptionInfo(info);
    told.code = aclrtGetErrorCodeFromExceptionInfo(info);
    told.thread = aclrtGetThreadIdFromExceptionInfo(info);
}

static void note_of_binary(aclrtExceptionInfo *info, void *data)
{
    void *args = NULL;
    *(int *)data += 1;
    OK(aclrtGetFuncHandleFromExceptionInfo(info, &told.func));
    OK(aclrtGetArgsFromExceptionInfo(info, &args, &told.length));
    memcpy(&told.pointer, args, sizeof(told.pointer));
}

TEST(exceptions_are_told)
{
    int of_binary = 0;
    int32_t id;
    open_all();
    OK(aclrtSetExceptionInfoCallback(note_exception));
    OK(aclrtExceptionInfoCallbackRegister(note_exception));
    OK(aclrtExceptionInfoCallbackRegister(note_exception));
    OK(aclrtBinarySetExceptionCallback(binary, note_of_binary, &of_binary));
    launch("trap", value);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_EQ(told.n, 2);
    CHECK_EQ(of_binary, 1);
    OK(aclrtStreamGetId(stream, &id));
    CHECK_EQ(told.stream, id);
    CHECK_EQ(told.device, 0);
    CHECK_EQ(told.code, 507035);
    CHECK_EQ(told.thread, gettid());
    CHECK(told.func == function("trap"));
    CHECK_EQ(told.length, 8);
    CHECK(told.pointer == value);
    OK(aclrtSetExceptionInfoCallback(NULL));
    OK(aclrtExceptionInfoCallbackUnregister(note_exception));
    CHECK_ACL(aclrtExceptionInfoCallbackUnregister(note_exception), 107000);
    CHECK_ACL(aclrtExceptionInfoCallbackRegister(NULL), 107000);
    launch("trap", value);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507035);
    CHECK_EQ(told.n, 2);
    CHECK_EQ(of_binary, 2);
    CHECK_EQ(aclrtGetErrorCodeFromExceptionInfo(NULL), 0xffffffffu);
    uint64_t nothing[8] = {0};
    void *askew = (char *)nothing + 1; /* no address of ours */
    CHECK_EQ(aclrtGetErrorCodeFromExceptionInfo(askew), 0xffffffffu);
}

static int created, destroyed;
static void note_stream(aclrtStream which, aclrtStreamState state, void *args)
{
    (void)which;
    CHECK(args == &created);
    if (state == ACL_RT_STREAM_STATE_CREATE_POST)
        created++;
    else
        destroyed++;
}

TEST(streams_are_told)
{
    OK(aclrtRegStreamStateCallback("mine", note_stream, &created));
    CHECK_ACL(aclrtRegStreamStateCallback("mine", note_stream, NULL), 107000);
    open_all();
    CHECK_EQ(created, 2); /* the default stream too */
    OK(aclrtDestroyStream(stream));
    CHECK_EQ(destroyed, 1);
    OK(aclrtRegStreamStateCallback("mine", NULL, NULL));
    OK(aclrtCreateStream(&stream));
    CHECK_EQ(created, 2);
}

TEST(a_persistent_stream_can_be_cleaned)
{
    aclrtStream persistent;
    struct hold hold;
    open_all();
    CHECK_ACL(aclrtPersistentTaskClean(stream), 207000);
    CHECK_ACL(aclrtPersistentTaskClean(NULL), 100000);
    OK(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
    hold_stream(&hold, persistent);
    OK(aclrtMemsetAsync(value, 4, 1, 4, persistent));
    let_go(&hold);
    OK(aclrtPersistentTaskClean(persistent));
    OK(aclrtMemset(value, 4, 0, 4));
    aclrtEvent done;
    OK(aclrtCreateEvent(&done));
    OK(aclrtMemsetAsync(value, 4, 2, 4, persistent));
    OK(aclrtRecordEvent(done, persistent));
    OK(aclrtSynchronizeEvent(done));
    CHECK_EQ(read_value(), 0x02020202);
}

TEST(a_word_that_a_kernel_writes_is_noticed)
{
    aclrtStream other;
    open_all();
    OK(aclrtCreateStream(&other));
    OK(aclrtValueWait(value, 1, ACL_STREAM_WAIT_VALUE_EQ, other));
    let_engine_look();
    launch("add_one", value);
    OK(aclrtSynchronizeStream(other));
    CHECK_EQ(read_value(), 1);
}

TEST(a_kernel_has_a_time_limit)
{
    open_all();
    aclrtFuncHandle func = function("forever");
    aclrtLaunchKernelAttr attrs[2] = {
        {.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US, .value.timeoutUs = {20000, 0}},
        {.id = ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE, .value.engineType = ACL_RT_ENGINE_TYPE_AIC},
    };
    aclrtLaunchKernelCfg cfg = {attrs, 2};
    OK(aclrtLaunchKernelWithConfig(func, 1, stream, &cfg, args_of(func, value), NULL));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507014);
    CHECK_MESSAGE("ran longer than 20000 us");
    OK(aclrtSetOpExecuteTimeOutWithMs(10));
    launch("forever", value);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507034);
    OK(aclrtSetOpExecuteTimeOutWithMs(1000 * TEST_SECONDS)); /* what ends is not ended */
    launch("add_one", value);
    OK(aclrtSynchronizeStream(stream));
}

TEST(force_ends_a_kernel)
{
    open_all();
    launch("forever", value);
    wait_until_it_runs();
    OK(aclrtDestroyStreamForce(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_in_stream_order),
        cmocka_unit_test(every_block_runs_once),
        cmocka_unit_test(the_argument_block_is_a_c_structure),
        cmocka_unit_test(a_parameter_can_be_updated),
        cmocka_unit_test(a_list_has_limits),
        cmocka_unit_test(a_list_in_memory_of_the_program),
        cmocka_unit_test(variables_and_sizes_of_a_binary),
        cmocka_unit_test(overflow_is_told_where_it_is_looked_for),
        cmocka_unit_test(a_binary_may_say_what_parameters_a_kernel_has),
        cmocka_unit_test(a_launch_with_a_pointer_to_each_argument),
        cmocka_unit_test(arguments_in_card_or_host_memory),
        cmocka_unit_test(binaries_and_functions_are_checked),
        cmocka_unit_test(unload_waits_for_no_launch),
        cmocka_unit_test(a_binary_from_memory),
        cmocka_unit_test(launches_are_checked),
        cmocka_unit_test(continue_on_failure_gives_2_and_507035),
        cmocka_unit_test(stop_on_failure_gives_1_and_507035),
        cmocka_unit_test(a_failure_mode_is_set_once),
        cmocka_unit_test(stop_ends_the_running_kernel_alone),
        cmocka_unit_test(abort_ends_and_drops),
        cmocka_unit_test(the_recorded_sequence),
        cmocka_unit_test(waiters_hear_of_an_abort),
        cmocka_unit_test(waiters_hear_of_a_card_abort),
        cmocka_unit_test(a_card_abort_ends_a_stopped_context),
        cmocka_unit_test(faults_name_address_and_allocation),
        cmocka_unit_test(many_faults),
        cmocka_unit_test(exceptions_are_told),
        cmocka_unit_test(streams_are_told),
        cmocka_unit_test(a_persistent_stream_can_be_cleaned),
        cmocka_unit_test(a_word_that_a_kernel_writes_is_noticed),
        cmocka_unit_test(a_kernel_has_a_time_limit),
        cmocka_unit_test(force_ends_a_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings of programs that use a card: history switched on late, off, or overflowing (O-26),
 * and what the profiling calls say. Files are looked at by `belay trace`.
 */
#include "acl_test.h"

#include <acl/acl_prof.h>
#include <belay/trace.h>

static char folder[64];

/* Output of a command in the folder. */
static const char *shell(const char *command)
{
    static char text[65536], line[1024];
    snprintf(line, sizeof(line), "cd %s && { %s; } 2>&1", folder, command);
    FILE *out = popen(line, "r");
    CHECK(out != NULL);
    text[fread(text, 1, sizeof(text) - 1, out)] = '\0';
    CHECK_EQ(pclose(out), 0);
    return text;
}

static void must_say(const char *text, const char *words)
{
    if (strstr(text, words) == NULL) {
        fprintf(stderr, "\"%s\" is not in:\n%s", words, text);
        test_fail(__FILE__, __LINE__, "words are missing");
    }
}

static void begin(void)
{
    snprintf(folder, sizeof(folder), "/tmp/belay-trace-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(chdir(folder), 0);
    CHECK_ACL(aclInit(NULL), 0);
    CHECK_ACL(aclrtSetDevice(0), 0);
}

static void end(void)
{
    (void)shell("rm -rf $PWD/*");
    CHECK_EQ(rmdir(folder), 0);
}

/* 10 MiB before; a ring of 1000; 2500 allocations and frees of 4 KiB. */
TEST(late_and_overflowing)
{
    void *early, *block;
    begin();
    CHECK_ACL(aclrtMalloc(&early, 10 * MIB, HUGE_FIRST), 0);
    bly_trace_opts opts = bly_trace_opts_default();
    opts.ring = 1000;
    CHECK_EQ(bly_trace_start("late.trace", &opts), BLY_OK);
    for (int i = 0; i < 2500; i++) {
        CHECK_ACL(aclrtMalloc(&block, 4 * KIB, HUGE_FIRST), 0);
        CHECK_ACL(aclrtFree(block), 0);
    }
    CHECK_EQ(bly_trace_dump("dump.trace"), BLY_OK);
    const char *info = shell(BELAY_COMMAND " trace info dump.trace");
    must_say(info, "events    5000 seen, 1000 kept, 4000 oldest dropped, first kept no. 4001\n");
    must_say(info, "at start  1 blocks of card memory, 10485760 B (10 MiB)\n");
    must_say(info, "1 of them, 10485760 B (10 MiB): made before recording, site unknown\n");
    must_say(info, "peak      10489856 B"); /* and 4 KiB */
    must_say(info, "at end    1 blocks of card memory, 10485760 B (10 MiB)\n");
    must_say(info, "card 0    65464696832 B");
    must_say(shell(BELAY_COMMAND " trace convert dump.trace --to folded"),
             "made before recording, site unknown 10485760\n");
    /* The curve never goes above the total, and its last point is what is live. */
    must_say(shell(BELAY_COMMAND " trace convert dump.trace --to chrome | grep -c hbm_used"),
             "1001\n");
    must_say(
        shell(BELAY_COMMAND " trace convert dump.trace --to chrome | grep hbm_used | tail -n1"),
        "\"bytes\":10485760}");
    CHECK_EQ(bly_trace_stop(), BLY_OK);
    must_say(shell(BELAY_COMMAND " trace info late.trace"), "5000 seen, 1000 kept");
    CHECK_ACL(aclrtFree(early), 0);
    CHECK_ACL(aclFinalize(), 0);
    end();
}

/* The same of the pool behind aclrtMalloc: blocks, and not what the pool holds. */
TEST(late_with_a_pool)
{
    void *early, *block;
    begin();
    setenv("BELAY_ALLOC", "pool", 1);
    CHECK_ACL(aclrtMallocAlign32(&early, 10 * MIB, HUGE_FIRST), 0);
    CHECK_EQ(bly_trace_start("late.trace", NULL), BLY_OK);
    CHECK_ACL(aclrtMallocAlign32(&block, 4 * KIB, HUGE_FIRST), 0);
    CHECK_ACL(aclrtFree(block), 0);
    CHECK_EQ(bly_trace_stop(), BLY_OK);
    const char *info = shell(BELAY_COMMAND " trace info late.trace");
    must_say(info, "at start  1 blocks of card memory, 10485760 B (10 MiB)\n");
    must_say(info, "peak      10489856 B");
    must_say(info, "at end    1 blocks of card memory, 10485760 B (10 MiB)\n");
    CHECK_ACL(aclrtFree(early), 0);
    CHECK_ACL(aclFinalize(), 0);
    end();
}

TEST(never_on)
{
    void *block;
    begin();
    CHECK_ACL(aclrtMalloc(&block, 10 * MIB, HUGE_FIRST), 0);
    CHECK_EQ(bly_trace_dump("dump.trace"), BLY_OK);
    const char *info = shell(BELAY_COMMAND " trace info dump.trace");
    must_say(info, "events    no history: recording was off\n");
    must_say(info, "state     1 blocks of card memory, 10485760 B (10 MiB)\n");
    CHECK_ACL(aclFinalize(), 0);
    end();
}

TEST(ranges_of_the_profiling_calls)
{
    void *block, *stamp = aclprofCreateStamp();
    uint32_t id;
    begin();
    CHECK_EQ(bly_trace_start("prof.trace", NULL), BLY_OK);
    CHECK(stamp != NULL);
    CHECK_ACL(aclprofSetStampTraceMessage(stamp, "forward, with more behind", 7), 0);
    CHECK_ACL(aclprofPush(stamp), 0);
    CHECK_ACL(aclrtMalloc(&block, MIB, HUGE_FIRST), 0);
    CHECK_ACL(aclprofMark(stamp), 0);
    CHECK_ACL(aclprofPop(), 0);
    CHECK_ACL(aclprofPop(), ACL_ERROR_INTERNAL_ERROR);
    CHECK_ACL(aclprofRangeStart(stamp, &id), 0);
    CHECK_ACL(aclprofRangeStop(id), 0);
    CHECK_ACL(aclprofRangeStop(id), ACL_ERROR_INVALID_PARAM);
    CHECK_ACL(aclprofMarkEx("on a stream", 11, NULL), 0);
    aclprofTensorInfo tensors = {.opNameId = aclprofStr2Id("MatMul")};
    aclprofEventAttributes attributes = {.version = ACL_PROF_EVENT_ATTR_VERSION,
                                         .size = sizeof(attributes),
                                         .message.tensorInfo = &tensors};
    CHECK_ACL(aclprofRangePushEx(&attributes), 0);
    CHECK_ACL(aclrtFree(block), 0);
    CHECK_ACL(aclprofRangePop(), 0);
    aclprofDestroyStamp(stamp);
    CHECK_ACL(aclprofPush(stamp), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(bly_tag(block, "late"), BLY_OK);
    CHECK_EQ(bly_trace_stop(), BLY_OK);
    const char *events =
        shell(BELAY_COMMAND " trace convert prof.trace --to memscope | "
                            "sed -n 's/^[0-9]*,\\([A-Z]*,[A-Za-z_]*,[^,]*\\),.*/\\1/p'");
    must_say(events, "MSTX,Range_start,\"forward\"\nMALLOC,HAL,\"N/A\"\nMSTX,Mark,\"forward\"\n"
                     "MSTX,Range_end,\"forward\"\nMSTX,Range_start,\"forward\"\n"
                     "MSTX,Range_end,\"forward\"\nMSTX,Mark,\"on a stream\"\n"
                     "MSTX,Range_start,\"MatMul\"\nFREE,HAL,\"N/A\"\nMSTX,Range_end,\"MatMul\"\n");
    must_say(shell(BELAY_COMMAND " trace convert prof.trace --to folded"), ";forward;");
    CHECK_ACL(aclFinalize(), 0);
    end();
}

/* Sites have functions and lines in the file itself: it can be read elsewhere. */
TEST(sites_are_named_in_the_file)
{
    void *block;
    begin();
    CHECK_EQ(bly_trace_start("sites.trace", NULL), BLY_OK);
    CHECK_ACL(aclrtMalloc(&block, MIB, HUGE_FIRST), 0);
    CHECK_EQ(bly_trace_stop(), BLY_OK);
    must_say(shell("strings sites.trace"), "sites_are_named_in_the_file");
    must_say(shell(BELAY_COMMAND " trace convert sites.trace --to folded"),
             "sites_are_named_in_the_file");
    CHECK_ACL(aclFinalize(), 0);
    end();
}

__attribute__((noinline)) static void allocate_one(bool die)
{
    void *block;
    CHECK_ACL(aclInit(NULL), 0);
    CHECK_ACL(aclrtSetDevice(0), 0);
    CHECK_ACL(aclrtMalloc(&block, MIB, HUGE_FIRST), 0);
    if (die)
        _exit(0); /* no destructor, as with a kill */
}

/* The environment's way, with a program that is killed and one that becomes another. */
TEST(from_outside)
{
    snprintf(folder, sizeof(folder), "/tmp/belay-trace-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    (void)shell(BELAY_COMMAND " run --report none --trace a.trace -- " SELF " --allocate-and-die");
    must_say(shell(BELAY_COMMAND " trace info a.trace"), "not closed");
    must_say(shell(BELAY_COMMAND " trace info a.trace"), "at end    1 blocks");
    (void)shell(BELAY_COMMAND " run --report none --trace a.trace -- sh -c '" SELF
                              " --allocate; " SELF " --allocate'");
    must_say(shell("ls"), "a.trace\na.trace.1\n");
    must_say(shell(BELAY_COMMAND " trace info a.trace.1"), "state     closed");
    must_say(shell(BELAY_COMMAND " trace convert a.trace --to folded"), "allocate_one");
    end();
}

TEST(the_profiler_needs_a_folder_and_a_configuration)
{
    uint32_t devices[2] = {0, 0}, absent = 7;
    begin();
    CHECK_ACL(aclprofStart(NULL), 100000);
    CHECK_ACL(aclprofFinalize(), 100043);
    CHECK_ACL(aclprofInit(NULL, 1), 100000);
    CHECK_ACL(aclprofInit("out", 0), 100000);
    CHECK_ACL(aclprofInit("out", 4097), 100000);
    CHECK_ACL(aclprofInit("/dev/null", 9), 100000);
    CHECK_ACL(aclprofInit("no/where", 8), 100000);
    CHECK_MESSAGE("No such file or directory");
    CHECK(aclprofCreateConfig(NULL, 1, ACL_AICORE_NONE, NULL, ACL_PROF_TASK_MEMORY) == NULL);
    CHECK(aclprofCreateConfig(devices, 2, ACL_AICORE_NONE, NULL, 1) == NULL);
    CHECK_MESSAGE("deviceNums 2 is more than there are");
    CHECK(aclprofCreateConfig(&absent, 1, ACL_AICORE_NONE, NULL, 1) == NULL);
    CHECK_MESSAGE("device 7 is not there");
    aclprofConfig *config =
        aclprofCreateConfig(devices, 1, ACL_AICORE_NONE, NULL, ACL_PROF_TASK_MEMORY);
    CHECK(config != NULL);
    CHECK_ACL(aclprofStart(config), 100043);
    CHECK_ACL(aclprofStop(config), 100043);
    CHECK_ACL(aclprofInit("out", 3), 0);
    CHECK_ACL(aclprofInit("out", 3), 100042);
    CHECK_ACL(aclprofStop(config), 100043);
    CHECK_ACL(aclprofStart(ANY_ADDRESS), 100000);
    CHECK_ACL(aclprofStart(config), 0);
    CHECK_ACL(aclprofStart(config), 100042);
    CHECK_ACL(aclprofDestroyConfig(config), 100042);
    CHECK_ACL(aclprofStop(config), 0);
    CHECK_ACL(aclprofDestroyConfig(config), 0);
    CHECK_ACL(aclprofDestroyConfig(config), 100000);
    CHECK_ACL(aclprofFinalize(), 0);
    CHECK_ACL(aclprofFinalize(), 100043);
    end();
}

TEST(a_profile_is_a_recording)
{
    uint32_t device = 0;
    void *block = NULL;
    begin();
    CHECK_ACL(aclprofInit("out", 3), 0);
    aclprofConfig *config =
        aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, NULL, ACL_PROF_TASK_MEMORY);
    for (int i = 0; i < 2; i++) {
        CHECK_ACL(aclprofStart(config), 0);
        CHECK_EQ(bly_trace_start("mine.trace", NULL), BLY_E_STATE);
        CHECK_ACL(aclrtMallocAlign32(&block, 3 * MIB, HUGE_FIRST), 0);
        CHECK_ACL(aclrtFree(block), 0);
        CHECK_ACL(aclprofStop(config), 0);
        CHECK_EQ(bly_trace_stop(), BLY_E_STATE);
    }
    must_say(shell("ls -d out/PROF_*_0 out/PROF_*_1 | wc -l"), "2\n");
    must_say(shell(BELAY_COMMAND " trace info out/PROF_*_1/belay.trace"),
             "peak      3145728 B (3 MiB)");

    /* One that is under way has it all, and stays. */
    CHECK_EQ(bly_trace_start("mine.trace", NULL), BLY_OK);
    CHECK_ACL(aclprofStart(config), 0);
    CHECK_ACL(aclrtMallocAlign32(&block, 5 * MIB, HUGE_FIRST), 0);
    CHECK_ACL(aclrtFree(block), 0);
    CHECK_ACL(aclprofFinalize(), 0);
    CHECK_EQ(bly_trace_stop(), BLY_OK);
    must_say(shell(BELAY_COMMAND " trace info mine.trace"), "peak      5242880 B (5 MiB)");
    CHECK_ACL(aclprofDestroyConfig(config), 0);
    end();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_and_overflowing),
        cmocka_unit_test(late_with_a_pool),
        cmocka_unit_test(never_on),
        cmocka_unit_test(ranges_of_the_profiling_calls),
        cmocka_unit_test(sites_are_named_in_the_file),
        cmocka_unit_test(the_profiler_needs_a_folder_and_a_configuration),
        cmocka_unit_test(a_profile_is_a_recording),
        cmocka_unit_test(from_outside),
    };
    if (argc > 1) {
        allocate_one(strcmp(argv[1], "--allocate-and-die") == 0);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

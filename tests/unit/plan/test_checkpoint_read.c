/* SPDX-License-Identifier: Apache-2.0
 * Chains from CSV: what is read, and what is refused with which sentence. */
#include "ckpt_test.h"

#include <unistd.h>

#include "base/host.h"

#define HEAD "stage,name,fwd_us,bwd_us,out,saved,grad,fwd_tmp,bwd_tmp\n"

static bly_status parse(const char *text, bly_chain *chain)
{
    return bly_chain_parse(text, strlen(text), "x.csv", chain);
}

static void what_is_read(void **state)
{
    (void)state;
    bly_chain chain;
    assert_ok(parse("# unit_bytes=100 input_units=7, more words\r\n" HEAD
                    "1,a b,1,2.5,3,4,5,6,7\r\n"
                    "\n2, , 0.001 ,20,0,0,0,0,0",
                    &chain));
    assert_int_equal(chain.n, 2);
    assert_int_equal(chain.unit, 100);
    assert_int_equal(chain.input, 700);
    const bly_chain_stage *stage = chain.stages;
    assert_string_equal(stage->name, "a b");
    assert_int_equal(stage->forward_ns, 1000);
    assert_int_equal(stage->backward_ns, 2500);
    assert_int_equal(stage->output, 300);
    assert_int_equal(stage->saved, 400);
    assert_int_equal(stage->gradient, 500);
    assert_int_equal(stage->forward_temp, 600);
    assert_int_equal(stage->backward_temp, 700);
    assert_string_equal(stage[1].name, "");
    assert_int_equal(stage[1].forward_ns, 1);
    bly_chain_release(&chain);

    /* Columns in another order, without the optional ones. */
    assert_ok(parse("bwd_tmp,fwd_tmp,grad,saved,out,bwd_us,fwd_us\n1,2,3,5,4,6,7\n", &chain));
    assert_null(chain.stages[0].name);
    assert_int_equal(chain.stages[0].forward_ns, 7000);
    assert_int_equal(chain.stages[0].saved, 5);
    assert_int_equal(chain.unit, 1);
    bly_chain_release(&chain);
}

static void what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "no header line"},
        {"\n# nothing\n", "no header line"},
        {HEAD, "no stages"},
        {"stage,name,fwd_us\n", "x.csv:1: the column bwd_us is missing"},
        {"stage,colour\n", "x.csv:1: unknown column \"colour\""},
        {"out,out\n", "x.csv:1: the column out is there twice"},
        {HEAD "1,a,1,2,3,4,5,6\n", "x.csv:2: 8 fields; the header has 9"},
        {HEAD "1,a,1,2,3,4,5,6,7,8\n", "x.csv:2: 10 fields"},
        {HEAD "2,a,1,2,3,4,5,6,7\n", "x.csv:2: stage is \"2\"; stage 1 comes next"},
        {HEAD "1,a,1,2,3,4,5,6,7\n\n3,a,1,2,3,4,5,6,7\n", "x.csv:4: stage is \"3\""},
        {HEAD "1,a,NaN,2,3,4,5,6,7\n", "x.csv:2: fwd_us is \"NaN\""},
        {HEAD "1,a,1,-2,3,4,5,6,7\n", "x.csv:2: bwd_us is \"-2\""},
        {HEAD "1,a,1,inf,3,4,5,6,7\n", "x.csv:2: bwd_us is \"inf\""},
        {HEAD "1,a,1,2.0001,3,4,5,6,7\n", "x.csv:2: bwd_us is \"2.0001\""},
        {HEAD "1,a,1,4398046512,3,4,5,6,7\n", "x.csv:2: bwd_us"},
        {HEAD "1,a,1,99999999999999999999,3,4,5,6,7\n", "x.csv:2: bwd_us"},
        {HEAD "1,a,1,2,-3,4,5,6,7\n", "x.csv:2: out is \"-3\""},
        {HEAD "1,a,1,2,3.5,4,5,6,7\n", "x.csv:2: out is \"3.5\""},
        {HEAD "1,a,1,2,1e3,4,5,6,7\n", "x.csv:2: out is \"1e3\""},
        {HEAD "1,a,1,2,,4,5,6,7\n", "x.csv:2: out is \"\""},
        {HEAD "1,a,1,2,3,2,5,6,7\n", "x.csv:2: saved is less than out"},
        {HEAD "1,a,1,2,3,18446744073709551616,5,6,7\n", "x.csv:2: saved is"},
        {HEAD "1,a,1,2,3,1152921504606846974,5,6,7\n", "sum to more than"},
        {"# unit_bytes=1152921504606846976\n" HEAD "1,a,1,2,1,1,5,6,7\n", "x.csv:3: with saved"},
        {"# unit_bytes=0\n" HEAD, "x.csv:1: an input of 0 units of 0 B"},
        {"# unit_bytes=-1\n" HEAD, "x.csv:1: unit_bytes is \"-1\""},
        {"# unit_bytes=2 input_units=1152921504606846976\n" HEAD, "x.csv:1: an input"},
        {HEAD "1,a,1,2,3,4,5,6,7\n# unit_bytes=2\n", "x.csv:3: unit_bytes comes after"},
        {HEAD "1,a\x01,1,2,3,4,5,6,7\n", "x.csv:2: the name has a control character"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bly_chain chain = {.n = 99};
        assert_int_equal(parse(rows[i].text, &chain), BLY_E_PARSE);
        if (strstr(bly_last_error(), rows[i].words) == NULL)
            fail_msg("row %zu: \"%s\" lacks \"%s\"", i, bly_last_error(), rows[i].words);
        assert_int_equal(chain.n, 99);
    }
    bly_chain chain;
    assert_int_equal(bly_chain_parse("out\0", 4, "x.csv", &chain), BLY_E_PARSE);
}

static void too_many_stages(void **state)
{
    (void)state;
    static const char row[] = "x,1,2,3,4,5,6,7\n", head[] = "name,fwd_us,bwd_us,out,saved,grad,"
                                                            "fwd_tmp,bwd_tmp\n";
    size_t length = strlen(head) + (BLY_CHAIN_STAGES_MAX + 1) * strlen(row);
    char *text = malloc(length + 1), *end = text;
    assert_non_null(text);
    end = stpcpy(end, head);
    for (int i = 0; i <= BLY_CHAIN_STAGES_MAX; i++)
        end = stpcpy(end, row);
    bly_chain chain;
    assert_ok(bly_chain_parse(text, length - strlen(row), "x.csv", &chain));
    assert_int_equal(chain.n, BLY_CHAIN_STAGES_MAX);
    bly_chain_release(&chain);
    assert_int_equal(bly_chain_parse(text, length, "x.csv", &chain), BLY_E_PARSE);
    assert_non_null(strstr(bly_last_error(), "x.csv:1026: more than 1024 stages"));
    free(text);
}

static void files(void **state)
{
    (void)state;
    bly_chain chain;
    assert_int_equal(bly_chain_read("/nonexistent/x.csv", &chain), BLY_E_IO);
    assert_int_equal(bly_chain_read("/", &chain), BLY_E_IO);
    char path[] = "/tmp/belay-chain-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, HEAD "1,a,1,2,3,4,5,6,7\n", strlen(HEAD) + 18), strlen(HEAD) + 18);
    assert_ok(bly_chain_read(path, &chain));
    bly_chain_release(&chain);
    assert_int_equal(ftruncate(fd, (off_t)10 << 30), 0); /* sparse */
    assert_int_equal(bly_chain_read(path, &chain), BLY_E_PARSE);
    assert_non_null(strstr(bly_last_error(), "longer than"));
    close(fd);
    unlink(path);
}

static void failing_host_memory(void **state)
{
    (void)state;
    struct blyi_host_stats before, after;
    bool failed = true;
    blyi_host_stats(&before);
    for (uint64_t nth = 1; failed; nth++) {
        bly_chain chain = {0};
        blyi_host_fail_nth(nth);
        bly_status status = parse(HEAD "1,a,1,2,3,4,5,6,7\n2,b,1,2,3,4,5,6,7\n", &chain);
        failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        assert_int_equal(status, failed ? BLY_E_HOST_MEMORY : BLY_OK);
        bly_chain_release(&chain);
        blyi_host_stats(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read),        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(too_many_stages),     cmocka_unit_test(files),
        cmocka_unit_test(failing_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Host code cannot touch card memory; the library can; nothing else changes. The mode is chosen
 * once per process, so every case is a child, once for each mode that this machine has. */
#include "order_test.h"

#include <belay/card.h>
#include <belay/kernel.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "npu/guard.h"
#include "npu/host_access.h"
#include "npu/kernel.h"
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/value.h"
#include "npu/vmm.h"

#define check(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #cond, blyi_fail_text());       \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define SIZE (4 * MiB)

static const char *mode;
static char said[65536]; /* what the child wrote to stderr */

__attribute__((no_sanitize("address", "thread"), noinline)) static int peek(const volatile char *at)
{
    return *at;
}

static char *block_of(uint64_t size)
{
    struct blyi_card *card;
    struct blyi_mem_request request = {
        .asked = size, .rounded = size, .module = 33, .site = BLYI_SITE_HERE()};
    void *address = NULL;
    check(blyi_context_here_card(&card) == BLY_OK);
    check(blyi_mem_alloc(card, &request, &address) == BLY_OK);
    check(blyi_set_now(address, 7, size) == BLY_OK);
    return address;
}

/* Runs `fn` in a child with the runtime up and guarded, and reads its stderr. */
static int child_status(void (*fn)(void))
{
    int ends[2], status = -1;
    size_t got = 0;
    ssize_t n;
    fflush(NULL);
    if (pipe(ends) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        struct sigaction segv = {.sa_handler = SIG_DFL}; /* not cmocka's */
        sigaction(SIGSEGV, &segv, NULL);
        alarm(600);
        dup2(ends[1], 2);
        close(ends[0]);
        setenv("BELAY_GUARD", mode, 1);
        if (fn != NULL)
            fn();
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], said + got, sizeof(said) - 1 - got)) > 0)
        got += (size_t)n;
    said[got] = '\0';
    close(ends[0]);
    waitpid(pid, &status, 0);
    return status;
}

static void begin_child(void)
{
    check(blyi_device_set(0, 0) == BLY_OK);
    check(blyi_guard.mode != BLYI_GUARD_OFF);
}

static void passes(void (*fn)(void))
{
    int status = child_status(fn);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("guard %s: status 0x%x, stderr:\n%s", mode, (unsigned)status, said);
}

static void is_stopped(void (*fn)(void))
{
    int status = child_status(fn);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
        fail_msg("guard %s: status 0x%x, stderr:\n%s", mode, (unsigned)status, said);
}

/* ---- host code ---- */

static void touch_a_block(void)
{
    begin_child();
    char *block = block_of(SIZE);
    fprintf(stderr, "expect at 0x%lx\n", (unsigned long)(block + 123));
    fprintf(stderr, "expect block 0x%lx\n", (unsigned long)block);
    peek(block + 123);
}

static void a_touch_is_stopped_and_told(void **state)
{
    (void)state;
    is_stopped(touch_a_block);
    char at[64] = "", block[64] = "", wanted[128];
    assert_int_equal(sscanf(said, "expect at %63s\nexpect block %63s\n", at, block), 2);
    snprintf(wanted, sizeof(wanted), "host code read memory of card 0 at %s,", at);
    assert_non_null(strstr(said, wanted));
    snprintf(wanted, sizeof(wanted), "123 bytes into block %s: 4194304 B (4 MiB) asked", block);
    assert_non_null(strstr(said, wanted));
    assert_non_null(strstr(said, "allocated at touch_a_block"));
    assert_non_null(strstr(said, "#0 peek"));
    assert_non_null(strstr(said, "touch_a_block"));
    assert_non_null(strstr(said, "The process ends here."));
}

static void *touch_it(void *block)
{
    peek(block);
    return NULL;
}

static pthread_barrier_t barrier;

static void *touch_later(void *place)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    peek(*(char **)place);
    return NULL;
}

static void touch_in_an_old_thread(void)
{
    pthread_t thread;
    static char *block;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, touch_later, &block);
    pthread_barrier_wait(&barrier);
    begin_child();
    block = block_of(SIZE);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

static void touch_in_a_new_thread(void)
{
    pthread_t thread;
    begin_child();
    pthread_create(&thread, NULL, touch_it, block_of(SIZE));
    pthread_join(thread, NULL);
}

static void touch(void *block)
{
    peek(block);
}

static void touch_in_a_host_function(void)
{
    begin_child();
    check(blyi_callback_host_func(NULL, touch, block_of(SIZE), 0) == BLY_OK);
    blyi_stream_sync(NULL, 0);
}

static void touch_in_a_callback(void)
{
    begin_child();
    void *stream = NULL;
    check(blyi_stream_create(0, 0, 0, &stream) == BLY_OK);
    check(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, (uint64_t)pthread_self(), stream) ==
          BLY_OK);
    check(blyi_callback_launch(touch, block_of(SIZE), true, stream, 0) == BLY_OK);
    blyi_callback_process(BLYI_SERVES_CALLBACKS, 0);
}

static char *signal_block;

static void touch_in_handler(int signal)
{
    (void)signal;
    peek(signal_block);
}

/* The signal meets the thread inside a copy, where it has the right. */
static void touch_in_a_signal_handler(void)
{
    begin_child();
    signal_block = block_of(64 * MiB);
    char *host = calloc(1, 64 * MiB);
    signal(SIGALRM, touch_in_handler);
    ualarm(2000, 0);
    for (int i = 0; i < 1000; i++)
        check(blyi_copy_now(signal_block, host, 64 * MiB) == BLY_OK);
}

static void touch_after_a_failed_copy(void)
{
    begin_child();
    char *block = block_of(SIZE);
    check(blyi_copy_now(block, (void *)4096, 100) == BLY_E_FAULT);
    peek(block);
}

static void touch_in_a_forked_child(void)
{
    begin_child();
    char *block = block_of(SIZE);
    pid_t pid = fork();
    if (pid == 0) {
        peek(block);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    peek(block);
}

static void every_thread_of_the_program_is_stopped(void **state)
{
    (void)state;
    is_stopped(touch_in_an_old_thread);
    is_stopped(touch_in_a_new_thread);
    is_stopped(touch_in_a_host_function);
    is_stopped(touch_in_a_callback);
    is_stopped(touch_in_a_signal_handler);
    is_stopped(touch_after_a_failed_copy);
    is_stopped(touch_in_a_forked_child);
}

static void hand_to_the_kernel(void)
{
    int ends[2];
    begin_child();
    char *block = block_of(SIZE), byte = 0;
    check(pipe(ends) == 0 && write(ends[1], "abc", 3) == 3);
    errno = 0;
    check(read(ends[0], block, 3) == -1 && errno == EFAULT);
    errno = 0;
    check(write(ends[1], block, 3) == -1 && errno == EFAULT);
    check(blyi_copy_now(&byte, block, 1) == BLY_OK && byte == 7);
}

static void system_calls_get_efault(void **state)
{
    (void)state;
    passes(hand_to_the_kernel);
    assert_string_equal(said, "");
}

/* ---- the program's own handlers ---- */

static sigjmp_buf back;
static char *alternate;
static bool was_on_alternate;

static void leave(int signal)
{
    char here;
    (void)signal;
    was_on_alternate = alternate != NULL && (uintptr_t)&here - (uintptr_t)alternate < 65536;
    siglongjmp(back, 1);
}

static void survive(char *block)
{
    char byte = 0;
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) {
            peek(block);
            check(false);
        }
        check(blyi_copy_now(&byte, block, 1) == BLY_OK && byte == 7);
    }
}

static void handle_before(void)
{
    signal(SIGSEGV, leave);
    begin_child();
    survive(block_of(SIZE));
}

static void handle_after(void)
{
    begin_child();
    signal(SIGSEGV, leave);
    survive(block_of(SIZE));
}

static void handle_on_an_alternate_stack(void)
{
    alternate = malloc(65536);
    stack_t stack = {.ss_sp = alternate, .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_flags = SA_ONSTACK};
    action.sa_handler = leave;
    sigaction(SIGSEGV, &action, NULL);
    begin_child();
    survive(block_of(SIZE));
    check(was_on_alternate);
}

static void handle_often(void)
{
    signal(SIGSEGV, leave);
    begin_child();
    char *block = block_of(SIZE);
    for (int i = 0; i < 20; i++)
        survive(block);
}

static unsigned times_said(const char *what)
{
    unsigned n = 0;
    for (const char *at = said; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void handlers_of_the_program_are_called(void **state)
{
    (void)state;
    passes(handle_before);
    assert_non_null(strstr(said, "The program's own handler is called."));
    assert_int_equal(times_said("host code"), 3);
    passes(handle_after); /* it took our place: nothing is told */
    assert_int_equal(times_said("host code"), 0);
    passes(handle_on_an_alternate_stack);
    assert_int_equal(times_said("host code"), 3);
    passes(handle_often);
    assert_int_equal(times_said("host code"), 8); /* a flood is cut off */
}

static void ignore(int signal)
{
    (void)signal;
}

static void fault_elsewhere(void)
{
    signal(SIGSEGV, leave);
    begin_child();
    char *pages = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sigsetjmp(back, 1) == 0) {
        peek(pages);
        check(false);
    }
}

static void other_faults_are_not_ours(void **state)
{
    (void)state;
    passes(fault_elsewhere);
    assert_string_equal(said, "");
}

/* ---- the library ---- */

/* Blocks from scattered frames: what is a row of addresses is none of frames. */
static char *scattered(uint64_t n_frames)
{
    char *held[64];
    for (int i = 0; i < 64; i++)
        held[i] = block_of(2 * MiB);
    for (int i = 0; i < 64; i += 2)
        check(blyi_mem_free(held[i], 0) == BLY_OK);
    return block_of(n_frames * 2 * MiB);
}

static void copy_everything(void)
{
    begin_child();
    const uint64_t size = 40 * MiB;
    char *a = scattered(20), *b = scattered(20), *pinned = NULL;
    unsigned char *in = malloc(size), *out = malloc(size);
    void *address = NULL;
    check(blyi_pinned_alloc(size, size, 0, 33, &address) == BLY_OK);
    pinned = address;
    for (uint64_t i = 0; i < size; i++)
        in[i] = (unsigned char)(i * 31 + (i >> 12));
    check(blyi_copy_now(a, in, size) == BLY_OK);
    check(blyi_copy_now(b + 777, a + 3, size - 1000) == BLY_OK);
    check(blyi_copy_now(out, b + 777, size - 1000) == BLY_OK);
    check(memcmp(out, in + 3, size - 1000) == 0);
    check(blyi_set_now(a + 5, 9, size - 10) == BLY_OK);
    check(blyi_copy_async(pinned, a, size, NULL, 0) == BLY_OK);
    check(blyi_set_async(b, 8, size, NULL, 0) == BLY_OK);
    check(blyi_stream_sync(NULL, 0) == BLY_OK);
    check(pinned[4] == (char)in[4] && pinned[5] == 9 && pinned[size - 6] == 9);
    check(pinned[size - 5] == (char)in[size - 5]);
    check(blyi_copy2d_now(out, 3 * MiB, b, 5 * MiB, 3 * MiB - 1, 7) == BLY_OK);
    check(out[0] == 8 && out[6 * 3 * MiB + 3 * MiB - 2] == 8);
    check(blyi_copy_now(out, b, size + 1) == BLY_E_FAULT);
    check(blyi_copy_now(a, (char *)1, size) == BLY_E_FAULT);
    check(strstr(blyi_fail_text(), "host memory at 0x1 cannot be read, 0 bytes") != NULL);
    check(blyi_mem_free(a, 0) == BLY_OK && blyi_mem_free(b, 0) == BLY_OK);
    check(blyi_card_audit(blyi_card_get(0)));
}

static void *copy_in_circles(void *arg)
{
    char *block = arg, in[256], out[256];
    for (int i = 0; i < 20000; i++) {
        memset(in, i, sizeof(in));
        require(blyi_copy_now(block, in, sizeof(in)) == BLY_OK);
        require(blyi_copy_now(out, block, sizeof(out)) == BLY_OK);
        require(memcmp(in, out, sizeof(in)) == 0);
    }
    return NULL;
}

/* Threads come and go and signals hail while copies run: no false alarm. */
static void copy_in_a_storm(void)
{
    const struct itimerval often = {{0, 200}, {0, 200}};
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = ignore;
    sigaction(SIGALRM, &action, NULL);
    begin_child();
    char *block = block_of(SIZE);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int round = 0; round < 3; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            check(pthread_create(&threads[i], NULL, copy_in_circles, block + i * 4096) == 0);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
}

static void copies_work_and_give_no_false_alarm(void **state)
{
    (void)state;
    passes(copy_everything);
    assert_string_equal(said, "");
    passes(copy_in_a_storm);
    assert_string_equal(said, "");
}

static void fail_each_call(void)
{
    begin_child();
    struct blyi_card *card = blyi_card_get(0);
    struct blyi_mem_request request = {.asked = SIZE, .rounded = SIZE, .module = 33};
    for (uint64_t n = 1;; n++) {
        void *address = NULL;
        blyi_sys_fail_nth(n, ENOMEM);
        bly_status status = blyi_mem_alloc(card, &request, &address);
        if (status == BLY_OK)
            status = blyi_set_now(address, 1, SIZE);
        bool failed = blyi_sys_failed();
        blyi_sys_fail_nth(0, 0);
        if (address != NULL)
            check(blyi_mem_free(address, 0) == BLY_OK);
        check(blyi_card_audit(card));
        if (!failed) {
            check(status == BLY_OK);
            break;
        }
        check(n < 50);
    }
}

static void a_refusing_kernel_changes_nothing(void **state)
{
    (void)state;
    passes(fail_each_call);
}

/* ---- reserved addresses ---- */

static char *map_handle(void **handle)
{
    struct blyi_physical_request request = {
        .card = blyi_card_get(0), .size = SIZE, .page_kind = BLYI_PAGE_HUGE};
    uintptr_t address;
    check(blyi_physical_create(&request, handle) == BLY_OK);
    check(blyi_vmm_reserve(2 * SIZE, 0, 0, 0, &address) == BLY_OK);
    check(blyi_mapping_make(address, SIZE, 0, *handle, true, BLYI_SITE_HERE()) == BLY_OK);
    check(blyi_set_now((void *)address, 7, SIZE) == BLY_OK);
    return (char *)address;
}

static void touch_a_mapping(void)
{
    void *handle;
    begin_child();
    peek(map_handle(&handle) + 100);
}

static void touch_behind_a_mapping(void)
{
    void *handle;
    begin_child();
    peek(map_handle(&handle) + SIZE);
}

static void touch_what_was_unmapped(void)
{
    void *handle;
    begin_child();
    char *at = map_handle(&handle);
    check(blyi_mapping_grant((uintptr_t)at, SIZE, BLYI_LOCATION_HOST) == BLY_OK);
    check(peek(at) == 7);
    check(blyi_mapping_remove((uintptr_t)at, BLYI_SITE_HERE()) == BLY_OK);
    check(blyi_mapping_make((uintptr_t)at, SIZE, 0, handle, true, 0) == BLY_OK);
    peek(at); /* the new mapping has no grant */
}

/* A grant to the host opens one mapping and not its neighbour, also when frames move. */
static void use_a_granted_mapping(void)
{
    void *handle, *other;
    char byte = 0;
    begin_child();
    char *at = map_handle(&handle);
    check(blyi_mapping_grant((uintptr_t)at, SIZE, BLYI_LOCATION_HOST) == BLY_OK);
    at[1] = 3;
    check(peek(at + SIZE - 1) == 7);
    check(blyi_copy_now(&byte, at + 1, 1) == BLY_OK && byte == 3);
    struct blyi_physical_request request = {.size = SIZE, .page_kind = BLYI_PAGE_HUGE};
    uintptr_t host;
    check(blyi_physical_create(&request, &other) == BLY_OK);
    check(blyi_vmm_reserve(SIZE, 0, 0, 0, &host) == BLY_OK);
    check(blyi_mapping_make(host, SIZE, 0, other, false, 0) == BLY_OK);
    check(blyi_mapping_grant(host, SIZE, 0) == BLY_OK); /* the card alone */
    check(blyi_copy_now((void *)host, at, SIZE) == BLY_OK);
    check(blyi_mapping_grant(host, SIZE, BLYI_LOCATION_HOST) == BLY_OK);
    check(memcmp((void *)host, at, SIZE) == 0);
}

static void reserved_addresses_are_the_hosts_by_grant(void **state)
{
    (void)state;
    is_stopped(touch_a_mapping);
    assert_non_null(strstr(said, "host code read memory of card 0 at"));
    assert_non_null(strstr(said, "100 bytes into mapping 0x"));
    assert_non_null(strstr(said, "the host has no access (aclrtMemSetAccess)"));
    assert_non_null(strstr(said, "mapped at touch_a_mapping"));
    is_stopped(touch_behind_a_mapping);
    assert_non_null(strstr(said, "nothing is mapped there"));
    is_stopped(touch_what_was_unmapped);
    passes(use_a_granted_mapping);
    assert_string_equal(said, "");
}

/* ---- frames that move, words, kernels ---- */

static void move_frames(void)
{
    begin_child();
    char *block = scattered(20), *copy = malloc(40 * MiB);
    bly_defrag defrag = {.struct_size = sizeof(defrag)};
    check(blyi_set_now(block, 5, 40 * MiB) == BLY_OK);
    check(bly_card_defrag(&defrag) == BLY_OK && defrag.copied > 0);
    check(blyi_copy_now(copy, block, 40 * MiB) == BLY_OK);
    check(copy[0] == 5 && copy[40 * MiB - 1] == 5 && memcmp(copy, copy + 1, 40 * MiB - 1) == 0);
    peek(block); /* moved and still guarded */
}

static void signal_by_words(void)
{
    uint64_t word = 0;
    begin_child();
    char *block = block_of(SIZE);
    check(blyi_value_write(block + 8, 77, NULL, 0) == BLY_OK);
    check(blyi_value_wait(block + 8, 77, BLYI_VALUE_EQUAL, NULL, 0) == BLY_OK);
    check(blyi_stream_sync(NULL, 0) == BLY_OK);
    check(blyi_copy_now(&word, block + 8, 8) == BLY_OK && word == 77);
}

static void add_one(const void *args, uint32_t block, uint32_t n_blocks)
{
    char *const *place = args;
    (void)block;
    (void)n_blocks;
    (*place)[0]++;
}

static void run_a_kernel(void)
{
    char byte = 0;
    begin_child();
    char *block = block_of(SIZE);
    check(bly_kernel_launch(add_one, &block, sizeof(block), NULL, NULL) == BLY_OK);
    check(blyi_stream_sync(NULL, 0) == BLY_OK);
    check(blyi_copy_now(&byte, block, 1) == BLY_OK && byte == 8);
    if (strcmp(mode, "alias") != 0)
        peek(block);
}

static void engines_reach_everything(void **state)
{
    (void)state;
    is_stopped(move_frames);
    passes(signal_by_words);
    assert_string_equal(said, "");
    if (strcmp(mode, "alias") == 0) {
        passes(run_a_kernel);
        assert_non_null(strstr(said, "not guarded from now on"));
    } else {
        is_stopped(run_a_kernel);
    }
}

/* ---- without keys, for kernels ---- */

static void open_up(void)
{
    begin_child();
    char *before = block_of(SIZE), byte = 0;
    blyi_guard_open();
    char *after = block_of(SIZE);
    if (strcmp(mode, "alias") != 0)
        return;
    check(peek(before) == 7 && peek(after + SIZE - 1) == 7);
    before[5] = 3;
    check(blyi_copy_now(&byte, before + 5, 1) == BLY_OK && byte == 3);
    check(blyi_mem_free(before, 0) == BLY_OK);
    peek(before);
}

static void kernels_end_the_guard_without_keys(void **state)
{
    (void)state;
    if (strcmp(mode, "alias") == 0) {
        is_stopped(open_up);
        assert_non_null(strstr(said, "freed"));
    } else {
        passes(open_up);
        assert_string_equal(said, "");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_touch_is_stopped_and_told),
    cmocka_unit_test(every_thread_of_the_program_is_stopped),
    cmocka_unit_test(system_calls_get_efault),
    cmocka_unit_test(handlers_of_the_program_are_called),
    cmocka_unit_test(other_faults_are_not_ours),
    cmocka_unit_test(copies_work_and_give_no_false_alarm),
    cmocka_unit_test(reserved_addresses_are_the_hosts_by_grant),
    cmocka_unit_test(engines_reach_everything),
    cmocka_unit_test(a_refusing_kernel_changes_nothing),
    cmocka_unit_test(kernels_end_the_guard_without_keys),
};

int main(void)
{
    setenv("BELAY_HBM", "512MiB", 1);
    mode = "alias";
    int failed = cmocka_run_group_tests_name("guard by a second mapping", tests, NULL, NULL);
    if (!blyi_guard_has_keys()) {
        puts("SKIPPED: guard by protection keys: this machine has none "
             "(scripts/check_guard_pku.sh runs them under emulation)");
        return failed;
    }
    mode = "on";
    return failed + cmocka_run_group_tests_name("guard by protection keys", tests, NULL, NULL);
}

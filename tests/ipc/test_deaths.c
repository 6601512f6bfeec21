/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that end, well or by SIGKILL, with shared memory in their hands, and at every place
 * inside a change. The others go on with their data, and what was held comes back. */
#include "peer.h"

#define ANY 1

static struct peer a, b, w; /* exporter, importer, and a witness that holds nothing */

static int begin(void **state)
{
    (void)state;
    peers_begin();
    peer_start(&w);
    DO(&w, INIT);
    return 0;
}

static int end(void **state)
{
    (void)state;
    struct peer *all[] = {&a, &b, &w};
    for (size_t i = 0; i < 3; i++)
        if (all[i]->pid != 0)
            peer_leave(all[i]);
    peers_end();
    return 0;
}

static void start(struct peer *peer)
{
    peer_start(peer);
    DO(peer, INIT);
}

static void sound(struct peer *peer)
{
    assert_int_equal(DO(peer, AUDIT)->a, 1);
}

static void expect(struct peer *peer, uint64_t address, uint64_t size, int byte)
{
    assert_int_equal(DO(peer, EXPECT, .a = address, .b = size, .c = (uint64_t)byte)->a, size);
}

/* Sizes of all sorts: huge pages, normal pages with and without whole frames. */
static const struct {
    uint64_t size, policy;
} sorts[] = {{16 * MIB - 32, HUGE_FIRST},
             {4 * MIB + 40 * KIB - 32, NORMAL_ONLY},
             {12 * KIB - 32, NORMAL_ONLY}};

static void the_exporter_ends(void **state)
{
    (void)state;
    uint64_t f0 = peer_free(&w);
    for (int killed = 0; killed < 2; killed++)
        for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++) {
            char key[65];
            start(&a);
            start(&b);
            uint64_t size = sorts[i].size;
            DO(&a, MALLOC, .a = 5000, .b = NORMAL_ONLY);
            uint64_t p = DO(&a, MALLOC, .a = size, .b = sorts[i].policy)->a;
            DO(&a, FILL, .a = p, .b = size, .c = 7);
            snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = size, .c = ANY)->key);
            uint64_t q = DO_KEY(&b, IMPORT, key)->a;
            if (killed)
                peer_kill(&a);
            else
                peer_leave(&a);
            DO(&w, REAP);
            expect(&b, q, size, 7);
            DO(&b, FILL, .a = q, .b = size, .c = 8);
            WANT_KEY(107000, &w, IMPORT, key);
            SAYS(&w, "its exporter pid");
            for (int k = 0; k < 20; k++) { /* nobody is given what the importer has */
                uint64_t block = DO(&w, MALLOC, .a = 2 * MIB)->a;
                DO(&w, FILL, .a = block, .b = 2 * MIB, .c = 1);
            }
            expect(&b, q, size, 8);
            sound(&b);
            sound(&w);
            DO_KEY(&b, CLOSE, key);
            assert_int_equal(DO(&w, LIST)->a, 0);
            sound(&b);
            peer_leave(&b);
            DO(&w, RESET, .a = 0);
            DO(&w, DEVICE, .a = 0);
            DO(&w, REAP);
            assert_int_equal(peer_free(&w), f0);
            sound(&w);
        }
}

static void the_importer_ends(void **state)
{
    (void)state;
    uint64_t f0 = peer_free(&w);
    for (int freed = 0; freed < 2; freed++)
        for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++) {
            start(&a);
            start(&b);
            uint64_t size = sorts[i].size, p = DO(&a, MALLOC, .a = size, .b = sorts[i].policy)->a;
            DO(&a, FILL, .a = p, .b = size, .c = 7);
            DO(&a, EXPORT, .a = p, .b = size, .c = ANY);
            DO_KEY(&b, IMPORT, a.answer.key);
            if (freed)
                DO(&a, FREE, .a = p);
            peer_kill(&b);
            DO(&w, REAP);
            assert_int_equal(DO(&w, LIST)->a, freed ? 0 : 1);
            if (!freed) {
                expect(&a, p, size, 7);
                DO(&a, FREE, .a = p);
            }
            sound(&a);
            peer_leave(&a);
            DO(&w, REAP);
            assert_int_equal(peer_free(&w), f0);
            sound(&w);
        }
}

static void nobody_is_left(void **state)
{
    (void)state;
    start(&a);
    start(&b);
    uint64_t f0 = peer_free(&w), p = DO(&a, MALLOC, .a = 8 * MIB)->a;
    DO(&a, EXPORT, .a = p, .b = 8 * MIB, .c = ANY);
    DO_KEY(&b, IMPORT, a.answer.key);
    peer_kill(&a);
    peer_kill(&b);
    peer_kill(&w);
    peer_start(&w); /* the cards are made anew */
    DO(&w, INIT);
    assert_int_equal(DO(&w, LIST)->a, 0);
    assert_int_equal(peer_free(&w), f0 + 32 * MIB);
    sound(&w);
}

/* What a process does with a share, each call of it cut off at every step in turn. */
enum {
    EXPORT,
    IMPORT,
    CLOSE,
    CLOSE_MADE,
    FREE,
    FREE_LAST,
    HANDLE,
    ADOPT,
    RELEASE,
    RELEASE_MADE,
    N_CUTS
};

static const char *const cut_names[N_CUTS] = {"export",
                                              "import",
                                              "close",
                                              "close by the maker",
                                              "free",
                                              "free by the last",
                                              "export of a handle",
                                              "import of a handle",
                                              "release of a handle",
                                              "release of a handle by the maker"};

/* Runs a call of kind `cut` whose process dies at its nth step. False: it has fewer. */
static bool cut_off(int cut, uint64_t size, uint64_t policy, uint64_t nth)
{
    char key[65] = "";
    uint64_t q = 0, shared = 0, imported = 0, p = 0, copy = 0;
    struct call call = {0};
    struct peer *dying =
        cut == IMPORT || cut == CLOSE || cut == FREE_LAST || cut == ADOPT || cut == RELEASE ? &b
                                                                                            : &a;
    bool handle = cut == HANDLE || cut == ADOPT || cut == RELEASE || cut == RELEASE_MADE;
    if (handle) {
        size = 6 * MIB;
        p = DO(&a, PHYSICAL, .a = 6 * MIB)->a;
        if (cut != HANDLE)
            shared = DO(&a, SHARE, .a = p, .c = ANY)->a;
        if (cut == RELEASE || cut == RELEASE_MADE)
            imported = DO(&b, ADOPT, .a = shared)->a;
        if (cut == RELEASE_MADE) {
            q = DO(&b, RESERVE, .a = size)->a;
            DO(&b, MAP, .a = q, .b = size, .c = imported);
            DO(&b, FILL, .a = q, .b = size, .c = 7);
        }
    } else {
        p = DO(&a, MALLOC, .a = size, .b = policy)->a;
        DO(&a, FILL, .a = p, .b = size, .c = 7);
        if (cut != EXPORT)
            snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = size, .c = ANY)->key);
        if (cut == CLOSE || cut == FREE || cut == FREE_LAST)
            q = DO_KEY(&b, IMPORT, key)->a;
        if (cut == FREE_LAST)
            DO(&a, FREE, .a = p);
    }
    if (q != 0) { /* the importer's card is at work on it */
        copy = DO(&b, MALLOC, .a = size, .b = policy)->a;
        DO(&b, QUEUE, .a = copy, .b = q, .c = size, .d = 20);
    }
    call.c = ANY;
    switch (cut) {
    case EXPORT:
        call = (struct call){.op = OP_EXPORT, .a = p, .b = size, .c = ANY};
        break;
    case IMPORT:
        call.op = OP_IMPORT;
        break;
    case CLOSE:
    case CLOSE_MADE:
    case FREE_LAST:
        call.op = OP_CLOSE;
        break;
    case FREE:
        call = (struct call){.op = OP_FREE, .a = p};
        break;
    case HANDLE:
        call = (struct call){.op = OP_SHARE, .a = p, .c = ANY};
        break;
    case ADOPT:
        call = (struct call){.op = OP_ADOPT, .a = shared};
        break;
    default:
        call = (struct call){.op = OP_RELEASE, .a = cut == RELEASE ? imported : p};
        break;
    }
    call = with_key(call, key);
    DO(dying, DIE, .a = nth);
    if (peer_call_maybe_dying(dying, call) != 0) { /* it got through */
        DO(dying, DIE, .a = 0);
        DO(&b, RESET, .a = 0); /* work that lost its memory has failed: nobody asks */
        return false;
    }
    if (dying == &b && cut != FREE_LAST && !handle) { /* the maker's data are intact */
        DO(&w, REAP);
        expect(&a, p, size, 7);
        sound(&a);
    }
    if (cut == FREE || cut == RELEASE_MADE) { /* the importer's are, and so is its work */
        DO(&w, REAP);
        DO(&b, WAIT);
        expect(&b, copy, size, 7);
        expect(&b, q, size, 7);
        sound(&b);
    }
    return true;
}

static void cut_off_everywhere(int cut, uint64_t size, uint64_t policy)
{
    uint64_t f0 = peer_free(&w), nth = 1;
    bool died = true;
    for (; died; nth++) {
        start(&a);
        start(&b);
        died = cut_off(cut, size, policy, nth);
        if (a.pid != 0)
            peer_leave(&a);
        if (b.pid != 0)
            peer_leave(&b);
        DO(&w, REAP);
        sound(&w);
        assert_int_equal(DO(&w, LIST)->a, 0);
        assert_int_equal(peer_free(&w), f0);
    }
    print_message("%s of %llu bytes: %llu places\n", cut_names[cut], (unsigned long long)size,
                  (unsigned long long)nth - 2);
    assert_true(nth > 3);
}

static void killed_at_every_place(void **state)
{
    (void)state;
    for (int cut = 0; cut < N_CUTS; cut++) {
        cut_off_everywhere(cut, 8 * MIB - 32, HUGE_FIRST);
        if (cut < HANDLE) {
            cut_off_everywhere(cut, 2 * MIB + 40 * KIB - 32, NORMAL_ONLY);
            cut_off_everywhere(cut, 8 * KIB - 32, NORMAL_ONLY);
        }
    }
}

/* A call whose nth allocation, or system call, is refused: a sentence, and nothing has changed.
 * Returns whether there was an nth. */
static bool refused(struct peer *peer, struct call call, uint64_t nth, bool system)
{
    DO(peer, FAIL, .a = system ? 0 : nth, .b = system ? nth : 0);
    struct answer answer = *peer_call(peer, call, __FILE__, __LINE__);
    bool failed = DO(peer, FAIL)->a != 0;
    sound(peer);
    if (answer.error == 0) { /* undone; a refusal may also have been made up for */
        if (call.op == OP_EXPORT)
            DO_KEY(peer, CLOSE, answer.key);
        else if (call.op == OP_IMPORT)
            DO_KEY(peer, CLOSE, call.key);
        else
            DO(peer, RELEASE, .a = answer.a);
        return failed;
    }
    assert_true(failed && strlen(answer.text) > 20);
    return true;
}

static void a_failing_host(void **state)
{
    (void)state;
    start(&a);
    start(&b);
    uint64_t size = 2 * MIB + 40 * KIB - 32, handle = DO(&a, PHYSICAL, .a = 4 * MIB)->a;
    uint64_t p = DO(&a, MALLOC, .a = size, .b = NORMAL_ONLY)->a, f0 = peer_free(&w);
    struct call export = {.op = OP_EXPORT, .a = p, .b = size, .c = ANY};
    struct call adopt = {.op = OP_ADOPT, .a = DO(&a, SHARE, .a = handle, .c = ANY)->a};
    unsigned n_refused = 0;
    for (int system = 0; system < 2; system++) {
        for (uint64_t nth = 1; refused(&a, export, nth, system); nth++) {
            n_refused++;
            assert_int_equal(DO(&a, LIST)->a, 1); /* the handle's */
        }
        char key[65];
        snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = size, .c = ANY)->key);
        struct call import = with_key((struct call){.op = OP_IMPORT}, key);
        for (uint64_t nth = 1; refused(&b, import, nth, system); nth++) {
            n_refused++;
            assert_int_equal(DO(&b, IMPORTED)->a, 0);
        }
        for (uint64_t nth = 1; refused(&b, adopt, nth, system); nth++) {
            n_refused++;
            assert_int_equal(DO(&b, IMPORTED)->a, 0);
        }
        DO_KEY(&a, CLOSE, key);
    }
    assert_true(n_refused >= 8);
    assert_int_equal(peer_free(&w), f0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(the_exporter_ends), T(the_importer_ends),     T(nobody_is_left),
        T(a_failing_host),    T(killed_at_every_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <acl/acl_rt_memory_soma.h>
#include <belay/card.h>
#include <belay/pointer.h>
#include "base/host.h"
#include "base/sys.h"
#include "face/acl/acl_symbols.h"
#include "npu/card.h"
#include "npu/ledger.h"
#include "npu/memory.h"
#include "npu/share.h"
#include "npu/vmm.h"

static char folder[64];

void peers_begin(void)
{
    snprintf(folder, sizeof folder, "/dev/shm/belay-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    setenv("BELAY_STATE", folder, 1);
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    unsetenv("BELAY_PEER");
    unsetenv("BELAY_CAP");
}

void peers_end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static bool put(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool get(int fd, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, (char *)bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static int expect(const struct call *call, struct answer *answer)
{
    size_t chunk = 4 * MIB, done = 0;
    unsigned char *host = malloc(chunk);
    int error = host ? 0 : -1;
    while (error == 0 && done < call->b) {
        size_t n = call->b - done < chunk ? call->b - done : chunk;
        error = bly_acl_aclrtMemcpy(host, n, at(call->a + done), n, ACL_MEMCPY_DEVICE_TO_HOST);
        size_t i = 0;
        while (error == 0 && i < n && host[i] == (unsigned char)call->c)
            i++;
        done += i;
        if (error != 0 || i < n)
            break;
    }
    free(host);
    answer->a = done;
    return error;
}

static int physical(uint64_t size, struct answer *answer)
{
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle = NULL;
    int error = bly_acl_aclrtMallocPhysical(&handle, size, &prop, 0);
    answer->a = (uintptr_t)handle;
    return error;
}

static void list(struct answer *answer)
{
    struct blyi_share_info shares[64];
    uint32_t n = blyi_share_list(-1, shares, 64);
    size_t used = 0;
    answer->a = n;
    for (uint32_t i = 0; i < n && i < 64; i++) {
        used += (size_t)snprintf(answer->text + used, sizeof answer->text - used,
                                 "%" PRIu64 "%s by %u:", shares[i].bytes,
                                 shares[i].made_free ? " freed" : "", shares[i].maker_pid);
        for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++)
            if (shares[i].holders[slot / 64] >> (slot % 64) & 1)
                used += (size_t)snprintf(answer->text + used, sizeof answer->text - used, " %u",
                                         blyi_ledger_slot_at(slot)->pid);
        used += (size_t)snprintf(answer->text + used, sizeof answer->text - used, ";");
    }
}

static bool audit(void)
{
    bool sound = blyi_vmm_audit();
    for (int i = 0; i < 2; i++)
        if (blyi_card_get(i))
            sound = sound && blyi_card_audit(blyi_card_get(i));
    char why[256] = "";
    if (blyi_ledger_audit(why, sizeof why))
        return sound;
    fprintf(stderr, "%s\n", why);
    return false;
}

static void imported(struct answer *answer)
{
    answer->a = answer->b = 0;
    for (int i = 0; i < 2; i++)
        answer->a += blyi_ledger_mine()->cards[i].imported;
    for (unsigned i = 0; i < BLYI_SLOT_ROWS; i++)
        if (blyi_ledger_mine()->rows[i].kind == BLYI_ROW_IMPORT)
            answer->b += blyi_ledger_mine()->rows[i].count;
}

static bool is_either(void *arg, uint32_t slot)
{
    const struct call *call = arg;
    uint32_t pid = blyi_ledger_slot_at(slot)->pid;
    return blyi_ledger_in_use(slot) && (pid == call->a || pid == call->b);
}

static int make_pool(const struct call *call, struct answer *answer)
{
    aclrtMemPoolProps props = {.handleType =
                                   call->a ? ACL_MEM_HANDLE_TYPE_POSIX : ACL_MEM_HANDLE_TYPE_NONE,
                               .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtMemPool pool = NULL;
    uint64_t all = UINT64_MAX;
    int error = bly_acl_aclrtMemPoolCreate(&pool, &props);
    if (error == 0)
        error = bly_acl_aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &all);
    answer->a = (uintptr_t)pool;
    return error;
}

static int do_pool(const struct call *call, struct answer *answer)
{
    static aclrtStream stream;
    void *made = NULL;
    int error = stream == NULL ? bly_acl_aclrtCreateStream(&stream) : 0;
    if (error != 0)
        return error;
    switch (call->op) {
    case OP_POOL:
        return make_pool(call, answer);
    case OP_TAKE:
        error = bly_acl_aclrtMemPoolMallocAsync(&made, call->a, at(call->b), stream);
        break;
    case OP_GIVE:
        error = bly_acl_aclrtMemPoolFreeAsync(at(call->a), stream);
        return error != 0 ? error : bly_acl_aclrtSynchronizeStream(stream);
    case OP_HELD:
        error = bly_acl_aclrtMemPoolGetAttr(at(call->a), ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT,
                                            &answer->b);
        return error != 0 ? error
                          : bly_acl_aclrtMemPoolGetAttr(
                                at(call->a), ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT, &answer->a);
    case OP_TRIM:
        return bly_acl_aclrtMemPoolTrimTo(at(call->a), call->b);
    case OP_RETAIN:
        error = bly_acl_aclrtMemRetainAllocationHandle(at(call->a), &made);
        break;
    default:
        return -1;
    }
    answer->a = (uintptr_t)made;
    return error;
}

static int do_share(const struct call *call, struct answer *answer)
{
    aclrtDrvMemHandle handle = NULL;
    int error = 0;
    switch (call->op) {
    case OP_PHYSICAL:
        return physical(call->a, answer);
    case OP_RELEASE:
        return bly_acl_aclrtFreePhysical(at(call->a));
    case OP_SHARE:
        return bly_acl_aclrtMemExportToShareableHandle(at(call->a), ACL_MEM_HANDLE_TYPE_NONE,
                                                       call->c, &answer->a);
    case OP_ADMIT:
        return bly_acl_aclrtMemSetPidToShareableHandle(call->a, &(int32_t){(int32_t)call->b}, 1);
    case OP_ADOPT:
        error = bly_acl_aclrtMemImportFromShareableHandle(call->a, (int32_t)call->b, &handle);
        break;
    case OP_FABRIC:
        return bly_acl_aclrtMemExportToShareableHandleV2(
            at(call->a), call->c, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, answer->fabric);
    case OP_ADOPT_FABRIC:
        error = bly_acl_aclrtMemImportFromShareableHandleV2(
            (void *)(uintptr_t)call->fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &handle);
        break;
    default:
        return do_pool(call, answer);
    }
    answer->a = (uintptr_t)handle;
    return error;
}

static int where(uint64_t address, struct answer *answer)
{
    aclrtPtrAttributes attributes = {0};
    int error = bly_acl_aclrtPointerGetAttributes(at(address), &attributes);
    answer->a = attributes.location.id;
    answer->b = (uint64_t)attributes.location.type;
    return error;
}

static int do_other(const struct call *call, struct answer *answer)
{
    bly_defrag defrag = {.struct_size = sizeof defrag};
    void *address = NULL;
    size_t free_bytes = 0, total = 0;
    int32_t pid = 0;
    int error = 0;
    switch (call->op) {
    case OP_FREE_MEM:
        error = bly_acl_aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total);
        answer->a = free_bytes;
        answer->b = total;
        return error;
    case OP_PID:
        error = bly_acl_aclrtDeviceGetBareTgid(&pid);
        answer->a = (uint64_t)pid;
        return error;
    case OP_RESERVE:
        error = bly_acl_aclrtReserveMemAddress(&address, call->a, 0, NULL, 1);
        answer->a = (uintptr_t)address;
        return error;
    case OP_MAP:
        return bly_acl_aclrtMapMem(at(call->a), call->b, 0, at(call->c), 0);
    case OP_UNMAP:
        return bly_acl_aclrtUnmapMem(at(call->a));
    case OP_RESET:
        return bly_acl_aclrtResetDeviceForce((int32_t)call->a);
    case OP_FINALISE:
        return bly_acl_aclFinalize();
    case OP_PEER:
        return bly_acl_aclrtDeviceEnablePeerAccess((int32_t)call->a, 0);
    case OP_DEVICE:
        return bly_acl_aclrtSetDevice((int32_t)call->a);
    case OP_LIST:
        list(answer);
        return 0;
    case OP_AUDIT:
        answer->a = audit();
        return 0;
    case OP_REAP:
        answer->a = blyi_ledger_reap();
        return 0;
    case OP_IMPORTED:
        imported(answer);
        return 0;
    case OP_FAIL:
        answer->a = blyi_host_failed() || blyi_sys_failed();
        blyi_host_fail_nth(call->a);
        blyi_sys_fail_nth(call->b, ENOMEM);
        return 0;
    case OP_CHARGED:
        blyi_ledger_lock();
        answer->a =
            blyi_share_charged_locked(is_either, &(struct call){.a = call->a, .b = call->b});
        blyi_ledger_unlock();
        return 0;
    case OP_INFO:
        (void)bly_pointer_text(at(call->a), answer->text, sizeof answer->text);
        return 0;
    case OP_WHERE:
        return where(call->a, answer);
    case OP_RANGE:
        error = bly_acl_aclrtMemGetAddressRange(at(call->a), &address, &total);
        answer->a = (uintptr_t)address;
        answer->b = total;
        return error;
    case OP_DEFRAG:
        error = bly_card_defrag(&defrag);
        answer->a = defrag.moved;
        return error;
    default:
        return do_share(call, answer);
    }
}

static int perform(const struct call *call, struct answer *answer)
{
    void *address = NULL;
    int error;
    switch (call->op) {
    case OP_INIT:
        error = bly_acl_aclInit(NULL);
        return error != 0 ? error : bly_acl_aclrtSetDevice((int32_t)call->a);
    case OP_MALLOC:
        error = bly_acl_aclrtMalloc(&address, call->a, (aclrtMemMallocPolicy)call->b);
        answer->a = (uintptr_t)address;
        return error;
    case OP_FREE:
        return bly_acl_aclrtFree(at(call->a));
    case OP_EXPORT:
        return bly_acl_aclrtIpcMemGetExportKey(at(call->a), call->b, answer->key,
                                               sizeof answer->key, call->c);
    case OP_IMPORT:
        error = bly_acl_aclrtIpcMemImportByKey(&address, call->key, call->c);
        answer->a = (uintptr_t)address;
        return error;
    case OP_CLOSE:
        return bly_acl_aclrtIpcMemClose(call->key);
    case OP_RT_NAME:
        return bly_acl_rtIpcSetMemoryName(at(call->a), call->b, answer->key, sizeof answer->key);
    case OP_RT_OPEN:
        error = bly_acl_rtIpcOpenMemory(&address, call->key);
        answer->a = (uintptr_t)address;
        return error;
    case OP_RT_CLOSE:
        return bly_acl_rtIpcCloseMemory(at(call->a));
    case OP_RT_DESTROY:
        return bly_acl_rtIpcDestroyMemoryName(call->key);
    case OP_RT_ADMIT:
        return bly_acl_rtSetIpcMemorySuperPodPid(call->key, (uint32_t)call->b,
                                                 &(int32_t){(int32_t)call->a}, 1);
    case OP_RT_P2P:
        return call->c ? bly_acl_rtEnableP2P((uint32_t)call->a, (uint32_t)call->b, 0)
                       : bly_acl_rtDisableP2P((uint32_t)call->a, (uint32_t)call->b);
    case OP_RT_COPY:
        error = bly_acl_rtMemcpyAsyncWithoutCheckKind(at(call->a), call->c, at(call->b), call->c,
                                                      (uint32_t)call->d, NULL);
        return error != 0 ? error : bly_acl_aclrtSynchronizeStream(NULL);
    case OP_ALLOW:
        return bly_acl_aclrtIpcMemSetImportPid(call->key, &(int32_t){(int32_t)call->a}, 1);
    case OP_FILL:
        return bly_acl_aclrtMemset(at(call->a), call->b, (int32_t)call->c, call->b);
    case OP_EXPECT:
        return expect(call, answer);
    case OP_COPY:
        return bly_acl_aclrtMemcpy(at(call->a), call->c, at(call->b), call->c,
                                   (aclrtMemcpyKind)call->d);
    case OP_ORDER:
        error = bly_acl_aclrtMemcpyAsync(at(call->a), call->c, at(call->b), call->c,
                                         (aclrtMemcpyKind)call->d, NULL);
        return error != 0 ? error : bly_acl_aclrtSynchronizeStream(NULL);
    case OP_QUEUE:
        error = 0;
        for (uint64_t i = 0; i < call->d && error == 0; i++)
            error = bly_acl_aclrtMemcpyAsync(at(call->a), call->c, at(call->b), call->c,
                                             ACL_MEMCPY_DEVICE_TO_DEVICE, NULL);
        return error;
    case OP_WAIT:
        return bly_acl_aclrtSynchronizeStream(NULL);
    default:
        return do_other(call, answer);
    }
}

/* A peer's life. */
static void serve(int in, int out)
{
    struct call call;
    while (get(in, &call, sizeof call)) {
        struct answer answer = {0};
        alarm(PEER_SECONDS);
        if (call.op == OP_EXIT)
            exit(0);
        if (call.op == OP_DIE)
            blyi_ledger_die_at(call.a);
        else
            answer.error = perform(&call, &answer);
        const char *text = answer.error != 0 ? bly_acl_aclGetRecentErrMsg() : NULL;
        if (text)
            snprintf(answer.text, sizeof answer.text, "%s", text);
        alarm(0);
        if (!put(out, &answer, sizeof answer))
            break;
    }
    exit(0); /* the test is gone */
}

void peer_start(struct peer *peer)
{
    int to[2], from[2];
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    fflush(NULL);
    peer->pid = fork();
    assert_true(peer->pid >= 0);
    if (peer->pid == 0) {
        const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
            (void)signal(signals[i], SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(to[1]);
        close(from[0]);
        serve(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    peer->in = from[0];
    peer->out = to[1];
}

static void peer_close(struct peer *peer, int *status)
{
    close(peer->in);
    close(peer->out);
    assert_int_equal(waitpid(peer->pid, status, 0), peer->pid);
    peer->pid = 0;
}

struct answer *peer_call(struct peer *peer, struct call call, const char *file, int line)
{
    if (!put(peer->out, &call, sizeof call) || !get(peer->in, &peer->answer, sizeof peer->answer)) {
        int status = 0;
        waitpid(peer->pid, &status, 0);
        print_error("%s:%d: process %d ended in call %d, status %#x\n", file, line, (int)peer->pid,
                    (int)call.op, (unsigned)status);
        _fail(file, line);
    }
    return &peer->answer;
}

struct answer *peer_want(struct answer *answer, int want, const char *file, int line)
{
    if (answer->error != want) {
        print_error("%s:%d: returned %d, not %d: %s\n", file, line, answer->error, want,
                    answer->text);
        _fail(file, line);
    }
    return answer;
}

void peer_says(const struct peer *peer, const char *part, const char *file, int line)
{
    if (strstr(peer->answer.text, part) == NULL) {
        print_error("%s:%d: no '%s' in: %s\n", file, line, part, peer->answer.text);
        _fail(file, line);
    }
}

int peer_call_maybe_dying(struct peer *peer, struct call call)
{
    int status = 0;
    assert_true(put(peer->out, &call, sizeof call));
    if (get(peer->in, &peer->answer, sizeof peer->answer))
        return 1;
    peer_close(peer, &status);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return 0;
}

void peer_kill(struct peer *peer)
{
    int status;
    assert_int_equal(kill(peer->pid, SIGKILL), 0);
    peer_close(peer, &status);
}

void peer_leave(struct peer *peer)
{
    int status = 0;
    struct call call = {.op = OP_EXIT};
    assert_true(put(peer->out, &call, sizeof call));
    peer_close(peer, &status);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

uint64_t peer_free(struct peer *peer)
{
    return DO(peer, FREE_MEM)->a;
}

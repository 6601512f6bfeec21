/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.c - first use, fork, finalise.
 */
#include "npu/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/option.h"
#include "base/sys.h"
#include "npu/backing.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/engine.h"
#include "npu/event.h"
#include "npu/fault.h"
#include "npu/guard.h"
#include "npu/ledger.h"
#include "npu/host_access.h"
#include "npu/memory.h"
#include "npu/tell.h"
#include "npu/watch.h"
#include "npu/peer.h"
#include "npu/service.h"
#include "npu/signal.h"
#include "npu/snapshot.h"
#include "npu/vmm.h"
#include "npu/window.h"

enum state { STATE_DOWN, STATE_UP, STATE_FORKED };

static uint32_t state;
static pid_t pid; /* of the process that brought the runtime up */
/* Rank RUNTIME, but no other lock of that rank is taken under it. */
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_RUNTIME);

/* Takes no lock and waits for nobody: the parent's threads do not exist here. Nothing of the
 * parent's memory is within reach afterwards, whatever call forgets to ask first. */
static void forked(void)
{
    __atomic_store_n(&state, STATE_FORKED, __ATOMIC_RELEASE);
    blyi_window_forget_all();
    blyi_backing_forget_all();
    blyi_ledger_forget();
    blyi_service_forget();
    blyi_signal_forget();
    blyi_snapshot_forget();
}

static void read_options(void)
{
    blyi_log_set_level((enum blyi_log_level)blyi_option_int(BLYI_OPT_LOG));
    if (blyi_option_int(BLYI_OPT_VIRTUAL_CLOCK))
        blyi_clock_set_virtual(true);
    if (blyi_option_int(BLYI_OPT_FAIL_HOST) > 0)
        blyi_host_fail_nth((uint64_t)blyi_option_int(BLYI_OPT_FAIL_HOST));
    if (blyi_option_int(BLYI_OPT_FAIL_SYSTEM) > 0)
        blyi_sys_fail_nth((uint64_t)blyi_option_int(BLYI_OPT_FAIL_SYSTEM), ENOMEM);
}

static bly_status start_locked(void)
{
    bly_status status = blyi_fault_install();
    if (status != BLY_OK)
        return status;
    int error = pthread_atfork(NULL, NULL, forked);
    if (error != 0)
        return blyi_fail(BLY_E_SYSTEM, "the handler of fork cannot be installed: %s",
                         strerror(error));
    pid = getpid();
    read_options();
    blyi_guard_start();
    blyi_host_access_watch();
    blyi_tell_start();
    return BLY_OK;
}

static bly_status refuse_forked(void)
{
    return blyi_fail(BLY_E_FORKED,
                     "process was forked after aclInit in parent %ld; exec or spawn instead",
                     (long)pid);
}

static bly_status enter_slow(void)
{
    bly_status status = BLY_OK;
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_DOWN) {
        blyi_lock_take(&lock);
        if (state == STATE_DOWN) {
            status = start_locked();
            if (status == BLY_OK)
                __atomic_store_n(&state, STATE_UP, __ATOMIC_RELEASE);
        }
        blyi_lock_drop(&lock);
        return status;
    }
    return refuse_forked();
}

bly_status blyi_runtime_enter(void)
{
    if (likely(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_UP))
        return BLY_OK;
    return enter_slow();
}

bool blyi_runtime_is_forked(void)
{
    return unlikely(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_FORKED);
}

bly_status blyi_runtime_check(void)
{
    return blyi_runtime_is_forked() ? refuse_forked() : BLY_OK;
}

void blyi_runtime_finalise(void)
{
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_UP)
        return;
    if (blyi_snapshot_pass() != BLY_OK) { /* its memory could not be given back */
        blyi_log(BLYI_LOG_WARN, "the runtime is not finalised: %s", blyi_fail_text());
        return;
    }
    blyi_context_finalise();
    blyi_device_finalise();
    blyi_vmm_finalise();
    blyi_peer_reset();
    blyi_engine_stop_all();
    blyi_service_stop();
    blyi_event_set_wait_timeout(0);
    blyi_watch_set_default(0);
    blyi_snapshot_end();
}

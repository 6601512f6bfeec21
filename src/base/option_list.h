/* SPDX-License-Identifier: Apache-2.0
 *
 * option_list.h - every option, once. Read from BELAY_<NAME>, `belay run --<name>` and the
 * native API; printed by `belay options`.
 *
 * X(name, type, default text, minimum, maximum, help)
 *   types: SIZE bytes (bounds in bytes), INT, BOOL (on/off), TEXT, CHOICE (the help begins with
 *   "a|b|c: "). Bounds of TEXT, BOOL and CHOICE are 0.
 */
#ifndef BLYI_OPTION_LIST_H
#define BLYI_OPTION_LIST_H

#define BLYI_OPTIONS(X)                                                                            \
    X(CARDS, INT, "1", 1, 64, "number of cards")                                                   \
    X(MODEL, TEXT, "910B", 0, 0, "910, 910B, 310P, or the path of a model file")                   \
    X(HBM, SIZE, "0", 0, (int64_t)1 << 44,                                                         \
      "memory of each card as programs see its total; 0: as the model says")                       \
    X(STREAMS, INT, "0", 0, 1 << 19,                                                               \
      "created streams a card has, default streams not counted; 0: as the model says")             \
    X(EVENTS, INT, "0", 0, 1 << 19, "event ids a card has; 0: as the model says")                  \
    X(STRICT_DEVICE, BOOL, "on", 0, 0,                                                             \
      "on: a thread that set no device gets 107002; off: it lands on card 0 with a warning")       \
    X(CAP, SIZE, "0", 0, (int64_t)1 << 46,                                                         \
      "hard cap of device memory for this process and its children; 0: none")                      \
    X(CAP_GROUP, TEXT, "", 0, 0,                                                                   \
      "who shares CAP with whom; written for children, not meant to be set")                       \
    X(PIN_ALIGN, SIZE, "4KiB", 4096, (int64_t)1 << 30, "alignment demanded of host registrations") \
    X(PIN_CEILING, SIZE, "0", 0, (int64_t)1 << 46,                                                 \
      "largest single pinned block or host registration; 0: none")                                 \
    X(PIN_LIMIT, SIZE, "0", 0, (int64_t)1 << 46,                                                   \
      "pinned host memory of the process altogether; 0: half of the machine's RAM")                \
    X(GUARD, CHOICE, "auto", 0, 0,                                                                 \
      "auto|on|off|alias: stops host code that touches card memory; auto: if the CPU has keys")    \
    X(ALLOC, CHOICE, "stock", 0, 0,                                                                \
      "stock|pool: who serves aclrtMalloc: pages of its own for each call, or a pool of the card") \
    X(POOL_SMALL, SIZE, "512KiB", 64 << 10, 512 << 10,                                             \
      "largest block of a pool that slabs and thread caches serve")                                \
    X(POOL_ALIGN, SIZE, "0", 0, (int64_t)1 << 30,                                                  \
      "alignment of blocks of aclrtMalloc's pool above POOL_SMALL, a power of two; 0: 512")        \
    X(POOL_PREFILL, TEXT, "", 0, 0,                                                                \
      "what aclrtMalloc's pool takes of a card at start: a share (90%) or bytes (1GiB); empty: "   \
      "none")                                                                                      \
    X(POOL_SLACK, INT, "100", 0, 100000,                                                           \
      "what aclrtMalloc's pool may hold above the most that was live, in 1/10000 of that")         \
    X(POOL_SPLIT, SIZE, "0", 0, (int64_t)1 << 46,                                                  \
      "largest block that pools may divide, of aclrtMalloc and aclrtMemPool; 0: all of them")      \
    X(POOL_WAIT_MS, INT, "1000", 0, 3600000,                                                       \
      "ms that a request of a pool waits for work on its memory before there is no room for it")   \
    X(STATE, TEXT, "", 0, 0,                                                                       \
      "folder in which processes share cards; private: this process alone; empty: of the user")    \
    X(CHECK, TEXT, "off", 0, 0,                                                                    \
      "off, all, or a list: leak,uaf,oob,race,uninit,host,unmap,pinned: faults that are looked "   \
      "for")                                                                                       \
    X(ERROR_EXITCODE, INT, "0", 0, 255,                                                            \
      "exit status of a process in which something was found; 0: as the program says")             \
    X(PRINT_LIMIT, INT, "20", 0, 1 << 30, "findings told while the program runs")                  \
    X(SUPPRESSIONS, TEXT, "", 0, 0,                                                                \
      "file of findings to leave out, lines of KIND FUNCTION FILE with * and ?; empty: none")      \
    X(REPORT, TEXT, "", 0, 0,                                                                      \
      "where the report goes at exit: - (stderr), *.json, *.html, *.txt, or several with commas "  \
      "between; %p is the pid; empty: none")                                                       \
    X(REPORT_APPEND, BOOL, "off", 0, 0,                                                            \
      "on: the first process adds to the report's file as well, rather than begin it anew")        \
    X(TRACE, TEXT, "", 0, 0, "file that everything is recorded to; %p is the pid; empty: none")    \
    X(TRACE_RING, INT, "0", 0, (int64_t)1 << 32,                                                   \
      "events kept of each process, the newest; 0: all")                                           \
    X(TRACE_KEEP, BOOL, "off", 0, 0,                                                               \
      "on: a trace that exists stays, and TRACE.1, TRACE.2 and on are taken")                      \
    X(STACKS, INT, "0", 0, 128, "frames recorded of each call; 0: the caller alone")               \
    X(SYMBOLIZER, TEXT, "", 0, 0,                                                                  \
      "program that finds function, file and line for reports; empty: belay, beside the library")  \
    X(LOG, CHOICE, "warn", 0, 0, "error|warn|info|debug: what is logged to stderr")                \
    X(WINDOW, SIZE, "0", 0, (int64_t)1 << 46,                                                      \
      "addresses reserved for each card; 0: twice its memory, at least 64 GiB")                    \
    X(VMM_WINDOW, SIZE, "0", 0, (int64_t)1 << 46,                                                  \
      "addresses that programs may reserve; 0: 8 TiB at 16 TiB, less where they are not free")     \
    X(PEER, TEXT, "on", 0, 0,                                                                      \
      "who may map whose memory: on, off, or groups of cards that share a switch, 0-3,4-7")        \
    X(PAGES, CHOICE, "auto", 0, 0, "auto|huge|small: how card memory is backed by the host")       \
    X(RESIDENT, SIZE, "4GiB", 0, (int64_t)1 << 44,                                                 \
      "freed card memory that stays backed by the host for quick reuse")                           \
    X(HOST_LIMIT, SIZE, "0", 0, (int64_t)1 << 46,                                                  \
      "host memory that may back cards; 0: what the machine and its cgroup leave")                 \
    X(SPIN_US, INT, "50", 0, 1000000, "microseconds an engine waits awake before it sleeps")       \
    X(SNAPSHOT_WAIT_MS, INT, "60000", 0, INT32_MAX,                                                \
      "milliseconds a snapshot's lock waits for queued work; 0: no limit")                         \
    X(FORCE_WAIT_MS, INT, "5000", 0, INT32_MAX,                                                    \
      "milliseconds that ending work by force waits for user code and kernels that do not "        \
      "return; 0: no limit")                                                                       \
    X(VIRTUAL_CLOCK, BOOL, "off", 0, 0, "time moves only when a test says so")                     \
    X(FAIL_HOST, INT, "0", 0, INT64_MAX, "test: the nth host allocation of the library fails")     \
    X(FAIL_SYSTEM, INT, "0", 0, INT64_MAX, "test: the nth wrapped system call fails")              \
    X(FAIL_LEDGER, INT, "0", 0, INT64_MAX,                                                         \
      "test: the process is killed at the nth step of changes to the ledger")

#endif

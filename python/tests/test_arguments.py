# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments: an exception that names the argument, or the runtime's code; never a crash."""
import ctypes
import inspect
import mmap
import os
import random
import subprocess
import sys
import tempfile
import unittest

import acl
from acl_case import Case, HUGE_FIRST, MIB
import gen_pyacl

SEED = int(os.environ.get("TEST_SEED", "1"))
ROUNDS = 300


class Number:
    """As NumPy's integers: no int, but a whole number."""
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Types(Case):
    def test_what_is_no_number(self):
        for wrong in (None, "1", 1.0, [1], b"1", object()):
            with self.assertRaisesRegex(TypeError, r"acl\.rt\.malloc: argument 1 \(size\)"):
                acl.rt.malloc(wrong, HUGE_FIRST)
            with self.assertRaisesRegex(TypeError, r"argument 2 \(policy\)"):
                acl.rt.malloc(64, wrong)

    def test_what_is_a_number(self):
        for size in (4096, Number(4096), True):
            memory = self.ok(acl.rt.malloc(size, Number(0)))
            self.ok(acl.rt.free(Number(memory)))

    def test_how_many(self):
        for arguments in ((), (1,), (1, 2, 3)):
            with self.assertRaisesRegex(TypeError, "takes 2 arguments, not %d" % len(arguments)):
                acl.rt.malloc(*arguments)
        with self.assertRaises(TypeError):
            acl.rt.malloc(size=1, policy=0)
        with self.assertRaises(TypeError):
            acl.rt.create_event(1)

    def test_ranges(self):
        for wrong in (1 << 31, -(1 << 31) - 1, 1 << 100):
            with self.assertRaises(TypeError):
                acl.rt.set_device(wrong)
        for wrong in (1 << 64, -(1 << 63) - 1):
            with self.assertRaises(TypeError):
                acl.rt.malloc(wrong, HUGE_FIRST)
        self.assertEqual(acl.rt.malloc(-1, HUGE_FIRST)[0], 0)  # 2**64 - 1
        self.assertEqual(acl.rt.set_device(-1), acl.ACL_ERROR_RT_INVALID_DEVICEID)
        for wrong in (1 << 16, -(1 << 15) - 1):
            with self.assertRaises(TypeError):
                acl.float16_to_float(wrong)

    def test_a_failing_index(self):
        class Bad:
            def __index__(self):
                raise ValueError("no")
        with self.assertRaises(TypeError):
            acl.rt.malloc(Bad(), HUGE_FIRST)

    def test_a_list_that_shrinks(self):
        items = []

        class Shrinks:
            def __index__(self):
                items.clear()
                return 0
        items.extend([Shrinks()] * 50)
        with self.assertRaises(IndexError):
            acl.rt.notify_batch_reset(items)

    def test_texts(self):
        for wrong in (5, b"x", ["x"]):
            with self.assertRaises(TypeError):
                acl.init(wrong)
            with self.assertRaises(TypeError):
                acl.app_log(acl.ACL_INFO, wrong)
        with self.assertRaisesRegex(TypeError, "NUL"):
            acl.app_log(acl.ACL_INFO, "a\0b")
        acl.app_log(acl.ACL_INFO, "100 %s %n \udcff")
        acl.log_record(0, 1, "%s%s%s")

    def test_callables(self):
        for wrong in (None, 5, "f"):
            with self.assertRaises(TypeError):
                acl.rt.launch_host_func(0, wrong, None)
            with self.assertRaises(TypeError):
                acl.util.start_thread(wrong, None)

    def test_configurations(self):
        good = {"attr": acl.ACL_RT_MEM_ATTR_MODULE_ID, "value": {"moduleId": 3}}
        for wrong in (None, [], {"attrs": good}, {"attrs": [good], "numAttrs": 2},
                      {"attrs": [good], "extra": 1}, {"attrs": [1]}, {"attrs": [{"attr": 1}]},
                      {"attrs": [{**good, "value": {}}]}, {"attrs": [{**good, "value": 3}]},
                      {"attrs": [{**good, "value": {"moduleId": 1 << 20}}]},
                      {"attrs": [{**good, "value": {"module": 1}}]},
                      {"attrs": [{**good, "value": {"rsv": [0] * 9}}]}, {"numAttrs": 0}):
            with self.subTest(wrong), self.assertRaises(TypeError):
                acl.rt.malloc_with_cfg(4096, HUGE_FIRST, wrong)


# ---------------------------------------------------------------- every function, any argument

SKIPPED = {
    "acl.rt.process_host_func",  # waits as long as it is told to
    "acl.rt.process_report",  # the same
    "acl.util.start_thread",  # runs what it is given
}
# Would wait for a message for ever: a timeout that is a number is a short one there.
WAITING = {"acl.mdl.ri_execute", "acl.tdt.dequeue", "acl.tdt.dequeue_data", "acl.tdt.enqueue",
           "acl.tdt.enqueue_data", "acl.tdt.receive_tensor", "acl.tdt.send_tensor"}
# Write to any host memory, as in C: not to that of the runtime itself.
WRITING = ("memcpy", "memset", "dequeue_data", "get_buf_user_data", "init_by_user_mem")
NUMBERS = [0, 1, 2, 7, 8, 16, -1, 4095, 4096, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 47,
           (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 0xdead0000, -(1 << 31)]
OTHERS = [None, "", "text", "a\0", 1.5, float("nan"), [], [1, 2], [{}], {}, {"location": {}}, (),
          (2, 2), b"bytes", b"", print, object, True]


class World:
    """Things that exist, or existed, to be passed where something else is wanted."""

    def __init__(self):
        acl.init()
        acl.rt.set_device(0)
        acl.rt.set_op_execute_time_out(1)
        acl.rt.set_op_wait_timeout(1)
        self.area = mmap.mmap(-1, 4 * MIB)  # what a copy may overwrite
        self.data = ctypes.addressof(ctypes.c_char.from_buffer(self.area))
        self.values = [acl.rt.malloc(MIB, HUGE_FIRST)[0], acl.rt.malloc_host(4096)[0],
                       acl.rt.create_stream()[0], acl.rt.create_event()[0],
                       acl.rt.create_notify(0)[0], acl.rt.create_context(0)[0],
                       acl.rt.allocator_create_desc(), self.data]
        gone = acl.rt.malloc(4096, HUGE_FIRST)[0]
        acl.rt.free(gone)
        self.values += [gone, self.values[0] + 5]
        self.values += self.graph() + self.tensors()
        # Addresses of the runtime's own heap: copies and sets may write anywhere, as in C.
        self.structs = [acl.create_data_buffer(0, 0), acl.rt.create_stream_config_handle()]

    def graph(self):
        """A graph, its stream and task, what is in a capture that goes on, labels."""
        memory, stream, other = self.values[:2], *(acl.rt.create_stream()[0] for _ in range(2))
        relaxed = acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED
        acl.mdl.ri_capture_begin(stream, relaxed)
        acl.rt.memcpy_async(memory[0], 64, memory[1], 64, acl.ACL_MEMCPY_HOST_TO_DEVICE, stream)
        graph = acl.mdl.ri_capture_end(stream)[0]
        streams = acl.mdl.ri_get_streams(graph)[0]
        acl.mdl.ri_capture_begin(other, relaxed)
        captured = acl.mdl.ri_capture_get_info(other)[1]
        condition = acl.mdl.ri_cond_handle_create(captured, 1, 0)[0]
        label = acl.rt.create_label()[0]
        tasks = [t for own in streams for t in acl.mdl.ri_get_tasks_by_stream(own)[0]]
        return [graph, other, captured, condition, label, acl.rt.create_label_list([label])[0],
                *streams, *tasks]

    def tensors(self):
        item = acl.tdt.create_data_item(acl.ACL_TENSOR_DATA_TENSOR, [8], acl.ACL_UINT8, self.data, 8)
        dataset = acl.tdt.create_dataset()
        acl.tdt.add_data_item(dataset, item)
        acl.tdt.create_queue(0)
        return [item, dataset, acl.tdt.create_channel_with_capacity(0, "name", 2),
                acl.tdt.alloc_buf(64, 0)[0], acl.tdt.create_queue_attr(),
                acl.tdt.create_queue_route(0, 1), acl.tdt.create_queue_route_list(),
                acl.tdt.create_queue_route_query_info(), acl.rt.create_group_info()]

    def begin(self, name):
        writes = any(part in name for part in WRITING)
        self.known = self.values if writes else self.values + self.structs

    def pick(self, random_source):
        which = random_source.random()
        if which < 0.4:
            return random_source.choice(self.known)
        return random_source.choice(NUMBERS if which < 0.75 else OTHERS)


def functions():
    rows = [row.python for row in gen_pyacl.Spec().exported() if row.python != "-"]
    names = rows + ["acl.util." + n for n in vars(acl.util) if not n.startswith("_")]
    return [n for n in names if n not in SKIPPED]


def find(name):
    module, _, function = name.rpartition(".")
    return getattr(sys.modules[module], function)


def attack(name):
    """In a process of its own: prints each attempt before it is made."""
    function, world = find(name), World()
    source = random.Random("%s %d" % (name, SEED))
    world.begin(name)
    parameters = list(inspect.signature(function).parameters)
    n = len(parameters)
    for _ in range(ROUNDS if n > 0 else 2):
        arguments = [world.pick(source) for _ in range(n)]
        if name in WAITING and isinstance(arguments[parameters.index("timeout")], int):
            arguments[parameters.index("timeout")] = source.choice((0, 1))
        print(name, arguments, flush=True)
        try:
            function(*arguments)
        except (TypeError, ValueError, MemoryError, RuntimeError):
            pass


class Hostile(unittest.TestCase):
    def attack_all(self, names):
        """One process for several functions; the one that dies is told by its last line."""
        with tempfile.TemporaryDirectory() as folder:  # for files that are printed
            result = subprocess.run([sys.executable, os.path.abspath(__file__), "attack", *names],
                                    timeout=600, cwd=folder, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    check=False, env={**os.environ, "BELAY_PIN_LIMIT": "64MiB"})
        last = result.stdout.splitlines()[-1] if result.stdout else ""
        self.assertEqual(result.returncode, 0, "seed %d: %s\n%s" % (
            SEED, last, result.stderr[-2000:]))

    def test_every_function(self):
        names = functions()
        self.assertGreater(len(names), 240)
        for start in range(0, len(names), 16):
            with self.subTest(start):
                self.attack_all(names[start:start + 16])


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        for each in sys.argv[2:]:
            attack(each)
        os._exit(0)  # what is left behind is anything
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Python functions in stream order, on the runtime's threads and on threads of our own."""
import gc
import sys
import threading
import unittest
import weakref

import acl
from acl_case import Case


class Callback(Case):
    def report_thread(self, stream):
        """A thread that takes callbacks until the list it got is not empty."""
        stop = []

        def serve(arguments):
            flag, timeout = arguments
            acl.rt.set_device(0)
            while not flag:
                acl.rt.process_report(timeout)
        thread = self.ok(acl.util.start_thread(serve, [stop, 100]))
        self.ok(acl.rt.subscribe_report(thread, stream))
        return thread, stop

    def test_launch_callback_on_a_report_thread(self):
        stream, seen = self.stream(), []
        thread, stop = self.report_thread(stream)
        me = threading.get_ident()
        for i in range(20):
            self.ok(acl.rt.launch_callback(lambda v: seen.append((v, threading.get_ident())), i,
                                           acl.ACL_CALLBACK_BLOCK, stream))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual([v for v, _ in seen], list(range(20)))
        self.assertEqual({t for _, t in seen}, {thread})
        self.assertNotEqual(thread, me)
        self.ok(acl.rt.unsubscribe_report(thread, stream))
        stop.append(True)
        self.ok(acl.util.stop_thread(thread))
        self.assertNotEqual(acl.util.stop_thread(thread), 0)

    def test_host_functions_run_in_order(self):
        stream, seen = self.stream(), []
        for i in range(200):
            self.ok(acl.rt.launch_host_func(stream, seen.append, i))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(seen, list(range(200)))

    def test_nothing_is_kept_after_the_call(self):
        class Argument:
            pass
        stream, argument = self.stream(), Argument()
        watched = weakref.ref(argument)
        self.ok(acl.rt.launch_host_func(stream, lambda _: None, argument))
        del argument
        self.assertIsNotNone(watched)
        self.ok(acl.rt.synchronize_stream(stream))
        gc.collect()
        self.assertIsNone(watched())

    def test_nothing_is_kept_when_the_launch_fails(self):
        class Argument:
            pass
        argument = Argument()
        count = sys.getrefcount(argument)
        self.assertNotEqual(acl.rt.launch_host_func(12345, lambda _: None, argument), 0)
        self.assertNotEqual(acl.rt.launch_callback(lambda _: None, argument, 9, 0), 0)
        self.assertEqual(sys.getrefcount(argument), count)

    def test_an_exception_is_told_and_the_stream_goes_on(self):
        stream, told, seen = self.stream(), [], []
        hook = sys.unraisablehook
        sys.unraisablehook = lambda info: told.append((type(info.exc_value), str(info.exc_value)))
        try:
            def fails(_):
                raise KeyError("lost")
            self.ok(acl.rt.launch_host_func(stream, fails, None))
            self.ok(acl.rt.launch_host_func(stream, seen.append, 1))
            self.ok(acl.rt.synchronize_stream(stream))
        finally:
            sys.unraisablehook = hook
        self.assertEqual(told, [(KeyError, "'lost'")])
        self.assertEqual(seen, [1])

    def test_a_callback_has_stack_enough(self):
        import json
        stream, seen = self.stream(), []
        nested = "[" * 500 + "]" * 500  # recursion in C

        def recurse(depth):
            return depth if depth == 0 else max([recurse(depth - 1)], key=lambda v: v)
        self.ok(acl.rt.launch_host_func(stream, lambda _: seen.append(recurse(200)), None))
        self.ok(acl.rt.launch_host_func(stream, lambda _: seen.append(len(json.loads(nested))),
                                        None))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(seen, [0, 1])

    def test_state_callbacks(self):
        seen = []
        self.ok(acl.rt.reg_stream_state_callback("python", lambda *a: seen.append(a), "tag"))
        stream = self.ok(acl.rt.create_stream())
        self.ok(acl.rt.destroy_stream(stream))
        self.assertEqual(seen, [(stream, acl.ACL_RT_STREAM_STATE_CREATE_POST, "tag"),
                                (stream, acl.ACL_RT_STREAM_STATE_DESTROY_PRE, "tag")])
        self.ok(acl.rt.reg_stream_state_callback("python", None, None))
        self.ok(acl.rt.destroy_stream(self.ok(acl.rt.create_stream())))
        self.assertEqual(len(seen), 2)

    def test_device_state_and_abort(self):
        seen = []
        self.ok(acl.rt.reg_device_state_callback("python", lambda *a: seen.append(a), 5))
        self.ok(acl.rt.reset_device(0))
        self.ok(acl.rt.set_device(0))
        self.assertTrue(seen)
        self.assertTrue(all(a[0] == 0 and a[2] == 5 for a in seen))
        self.ok(acl.rt.reg_device_state_callback("python", None, None))
        stages = []

        def aborted(device, stage, timeout, argument):
            stages.append((device, stage, timeout, argument))
        self.ok(acl.rt.set_device_task_abort_callback("python", aborted, "a"))
        self.ok(acl.rt.device_task_abort(0, 600000))
        self.assertEqual([s[1] for s in stages], [acl.ACL_RT_DEVICE_TASK_ABORT_PRE,
                                                  acl.ACL_RT_DEVICE_TASK_ABORT_POST])
        self.assertTrue(all(s[0] == 0 and s[3] == "a" for s in stages))
        self.ok(acl.rt.set_device_task_abort_callback("python", None, None))

    def test_allocator_functions_are_set_and_registered(self):
        stream, desc = self.stream(), acl.rt.allocator_create_desc()
        self.ok(acl.rt.allocator_set_obj_to_desc(desc, 1))
        for set_function in (acl.rt.allocator_set_alloc_func_to_desc,
                             acl.rt.allocator_set_free_func_to_desc,
                             acl.rt.allocator_set_alloc_advise_func_to_desc,
                             acl.rt.allocator_set_get_addr_from_block_func_to_desc):
            self.ok(set_function(desc, lambda *a: 4096))
            with self.assertRaises(TypeError):
                set_function(desc, None)
        self.ok(acl.rt.allocator_register(stream, desc))
        self.assertEqual(self.call_allocator(stream, desc), 4096)
        self.ok(acl.rt.allocator_unregister(stream))
        self.ok(acl.rt.allocator_destroy_desc(desc))

    def call_allocator(self, stream, desc):
        """As a C library would: asks for the stream's allocator and calls its first function."""
        import ctypes
        import os
        library = ctypes.CDLL(os.environ["LIBASCENDCL"])
        out = [ctypes.c_void_p() for _ in range(6)]
        self.ok(library.aclrtAllocatorGetByStream(ctypes.c_void_p(stream),
                                                  *[ctypes.byref(p) for p in out]))
        self.assertEqual(out[0].value, desc)
        alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(out[2].value)
        return alloc(out[1], 64)

    def test_threads(self):
        seen = []
        thread = self.ok(acl.util.start_thread(lambda: seen.append("none"), None))
        self.ok(acl.util.stop_thread(thread))
        thread = self.ok(acl.util.start_thread(seen.append, ["a", "list"]))
        self.ok(acl.util.stop_thread(thread))
        self.assertEqual(seen, ["none", ["a", "list"]])
        hook, sys.unraisablehook = sys.unraisablehook, lambda info: None
        try:
            thread = self.ok(acl.util.start_thread(lambda: 1 // 0, None))
            with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
                acl.util.stop_thread(thread)
        finally:
            sys.unraisablehook = hook
        for wrong in (0, 12345, threading.get_ident()):
            self.assertGreater(acl.util.stop_thread(wrong), 0)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Graphs from Python: captures, tasks, groups, conditions, built graphs, ends; what tasks they take."""
import ctypes
import gc
import json
import os
import struct
import sys
import tempfile
import threading
import unittest
import weakref

import acl
from acl_case import Case, D2D

RELAXED = acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED
GLOBAL = acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
INNER = acl.ACL_MEMCPY_INNER_DEVICE_TO_DEVICE


class Graph(Case):
    def setUp(self):
        super().setUp()
        self.one, self.two = self.stream(), self.stream()
        self.words = self.malloc(4096)
        self.ok(acl.rt.memset(self.words, 4096, 0, 4096))
        self.binary = self.ok(acl.rt.binary_load_from_file(os.environ["TEST_KERNELS"], []))
        self.addCleanup(acl.rt.binary_unload, self.binary)

    def word(self, index):
        return struct.unpack("Q", self.get(self.words + 8 * index, 8))[0]

    def write(self, index, value):
        self.put(self.words + 8 * index, struct.pack("Q", value))

    def copy(self, to, source, stream):
        self.ok(acl.rt.memcpy_async(self.words + 8 * to, 8, self.words + 8 * source, 8, D2D, stream))

    def launch(self, index, stream, name="add_one"):
        function = self.ok(acl.rt.binary_get_function(self.binary, name))
        argument = ctypes.c_uint64(self.words + 8 * index)
        self.ok(acl.rt.launch_kernel_with_host_args(function, 1, stream, [],
                                                    ctypes.addressof(argument), 8, []))
        return function

    def capture(self, fill, mode=RELAXED):
        self.ok(acl.mdl.ri_capture_begin(self.one, mode))
        fill()
        graph = self.ok(acl.mdl.ri_capture_end(self.one))
        self.addCleanup(acl.mdl.ri_destroy, graph)
        return graph

    def run_graph(self, graph, stream=None):
        stream = stream or self.two
        self.ok(acl.mdl.ri_execute_async(graph, stream))
        self.ok(acl.rt.synchronize_stream(stream))

    def task(self, graph, number=0):
        streams = self.ok(acl.mdl.ri_get_streams(graph))
        return self.ok(acl.mdl.ri_get_tasks_by_stream(streams[0]))[number]


class Capture(Graph):
    def test_capture_and_run(self):
        seen = []
        self.ok(acl.mdl.ri_capture_begin(self.one, GLOBAL))
        status, graph = self.ok(acl.mdl.ri_capture_get_info(self.one))
        self.assertEqual(status, acl.ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE)
        self.assertEqual(acl.rt.memset(self.words, 8, 1, 8),
                         acl.ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)
        self.assertEqual(self.ok(acl.mdl.ri_capture_thread_exchange_mode(RELAXED)), GLOBAL)
        self.ok(acl.rt.memset(self.words, 8, 0, 8))
        self.assertEqual(self.ok(acl.mdl.ri_capture_thread_exchange_mode(GLOBAL)), RELAXED)
        self.copy(1, 0, self.one)
        self.ok(acl.rt.launch_host_func(self.one, seen.append, None))
        self.assertEqual(self.ok(acl.mdl.ri_capture_end(self.one)), graph)
        self.assertEqual(acl.mdl.ri_capture_end(self.one),
                         (0, acl.ACL_ERROR_RT_STREAM_NOT_CAPTURED))
        self.assertEqual(self.ok(acl.mdl.ri_capture_get_info(self.one)), (0, 0))
        self.write(0, 7)
        self.assertEqual(self.word(1), 0)
        self.run_graph(graph)
        self.assertEqual(self.word(1), 7)
        self.ok(acl.mdl.ri_execute(graph, 1000))
        self.ok(acl.mdl.ri_destroy(graph))
        self.assertEqual(acl.mdl.ri_destroy(graph), acl.ACL_ERROR_RT_INVALID_HANDLE)

    def test_modes(self):
        self.assertEqual(acl.mdl.ri_capture_thread_exchange_mode(3),
                         (0, acl.ACL_ERROR_RT_PARAM_INVALID))
        modes = []

        def other():
            acl.rt.set_device(0)
            modes.append(acl.mdl.ri_capture_thread_exchange_mode(RELAXED))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        self.assertEqual(modes, [(GLOBAL, 0)])
        self.assertEqual(acl.mdl.ri_capture_thread_exchange_mode(GLOBAL), (GLOBAL, 0))

    def test_names_and_prints(self):
        graph = self.capture(lambda: self.copy(1, 0, self.one))
        self.ok(acl.mdl.ri_set_name(graph, "gräph"))
        self.assertEqual(self.ok(acl.mdl.ri_get_name(graph, 100)), "gräph")
        self.assertGreaterEqual(self.ok(acl.mdl.ri_get_id(graph)), 0)
        self.ok(acl.mdl.ri_debug_print(graph))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.json")
            self.ok(acl.mdl.ri_debug_json_print(graph, path, 0))
            with open(path, encoding="utf-8") as file:
                self.assertEqual([t["name"] for t in json.load(file)], ["MEMCPY"])
        self.assertEqual(acl.mdl.ri_abort(graph), acl.ACL_ERROR_RT_FEATURE_NOT_SUPPORT)


class Tasks(Graph):
    def test_lists(self):
        graph = self.capture(lambda: [self.launch(i, self.one) for i in range(3)])
        streams = self.ok(acl.mdl.ri_get_streams(graph))
        self.assertEqual(len(streams), 1)
        tasks = self.ok(acl.mdl.ri_get_tasks_by_stream(streams[0]))
        self.assertEqual([self.ok(acl.mdl.ri_task_get_seq_id(t)) for t in tasks], [0, 1, 2])
        self.assertEqual({self.ok(acl.mdl.ri_task_get_type(t)) for t in tasks},
                         {acl.ACL_MODEL_RI_TASK_KERNEL})
        self.assertEqual(acl.mdl.ri_get_streams(12345)[0], [])
        self.assertNotEqual(acl.mdl.ri_get_tasks_by_stream(self.one)[1], 0)

    def test_parameters_of_a_kernel(self):
        functions = []
        graph = self.capture(lambda: functions.append(self.launch(0, self.one)))
        task = self.task(graph)
        params = self.ok(acl.mdl.ri_task_get_params(task))
        kernel = params["kernelTaskParams"]
        self.assertEqual(params["type"], acl.ACL_MODEL_RI_TASK_KERNEL)
        self.assertEqual((kernel["funcHandle"], kernel["argsSize"], kernel["numBlocks"],
                          kernel["isHostArgs"]), (functions[0], 8, 1, 1))
        self.assertEqual(acl.util.ptr_to_bytes(kernel["args"], 8), struct.pack("Q", self.words))
        self.ok(acl.mdl.ri_task_set_params(task, params))  # what it tells, it takes
        argument = ctypes.c_uint64(self.words + 8)
        kernel["args"] = ctypes.addressof(argument)
        kernel["cfg"] = [{"id": acl.ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT, "value": 10}]
        self.ok(acl.mdl.ri_task_set_params(task, params))
        argument.value = 0
        self.run_graph(graph)
        self.assertEqual((self.word(0), self.word(1)), (1, 0))  # not before the update
        self.ok(acl.mdl.ri_update(graph))
        self.run_graph(graph)
        self.assertEqual((self.word(0), self.word(1)), (1, 1))
        self.ok(acl.mdl.ri_task_disable(task))
        self.ok(acl.mdl.ri_update(graph))
        self.run_graph(graph)
        self.assertEqual(self.word(1), 1)

    def test_parameters_of_a_word(self):
        graph = self.capture(lambda: self.ok(acl.rt.value_write(self.words, 5, 0, self.one)))
        task = self.task(graph)
        params = self.ok(acl.mdl.ri_task_get_params(task))
        self.assertEqual(params["valueWriteTaskParams"], {"devAddr": self.words, "value": 5})
        params["valueWriteTaskParams"]["value"] = 6
        self.ok(acl.mdl.ri_task_set_params(task, params))
        self.ok(acl.mdl.ri_update(graph))
        self.run_graph(graph)
        self.assertEqual(self.word(0), 6)

    def test_wrong_parameters(self):
        graph = self.capture(lambda: self.launch(0, self.one))
        task = self.task(graph)
        good = self.ok(acl.mdl.ri_task_get_params(task))
        for wrong in (None, {}, {"type": "1"}, {"type": 1, "extra": 1}, {"type": 1 << 40},
                      {**good, "kernelTaskParams": None},
                      {**good, "kernelTaskParams": {"numBlock": 1}},
                      {**good, "kernelTaskParams": {**good["kernelTaskParams"], "cfg": 5}},
                      {**good, "valueWriteTaskParams": {}}):
            with self.subTest(wrong), self.assertRaises(TypeError):
                acl.mdl.ri_task_set_params(task, wrong)
        for address in (16, 0xdead0000, (1 << 64) - 4):
            with self.assertRaises(ValueError):
                acl.mdl.ri_task_set_params(task, {**good, "kernelTaskParams": {
                    **good["kernelTaskParams"], "args": address}})
        self.assertNotEqual(acl.mdl.ri_task_set_params(task, {"type": 99}), 0)
        self.assertEqual(acl.mdl.ri_task_get_params(12345)[0], {})

    def test_a_group_is_updated(self):
        groups = []

        def fill():
            self.ok(acl.mdl.ri_capture_task_grp_begin(self.one))
            self.launch(0, self.one)
            groups.append(self.ok(acl.mdl.ri_capture_task_grp_end(self.one)))
        graph = self.capture(fill)
        self.run_graph(graph)
        self.ok(acl.mdl.ri_capture_task_update_begin(self.two, groups[0]))
        self.launch(1, self.two)
        self.ok(acl.mdl.ri_capture_task_update_end(self.two))
        self.run_graph(graph)
        self.assertEqual((self.word(0), self.word(1)), (1, 1))

    def test_kinds_with_addresses_on_the_card(self):
        size = self.ok(acl.rt.get_memcpy_desc_size(INNER))
        desc = self.malloc(256)
        self.assertEqual(size, 32)
        self.assertEqual(
            acl.rt.set_memcpy_desc(desc, INNER, self.words, self.words + 8, 8, 0), (desc, 0))
        self.write(2, self.words + 24)
        self.write(4, self.words)

        def fill():
            self.ok(acl.rt.memcpy_async_with_desc(desc, INNER, self.one))
            self.ok(acl.rt.memcpy_async_with_offset(self.words + 16, 8, 0, self.words + 32, 8, 0,
                                                    INNER, self.one))
        graph = self.capture(fill, GLOBAL)
        self.write(0, 9)
        self.run_graph(graph)
        self.assertEqual((self.word(1), self.word(3)), (9, 9))


class Conditions(Graph):
    def test_a_body_runs_while_its_word_says_so(self):
        self.ok(acl.mdl.ri_capture_begin(self.one, RELAXED))
        graph = self.ok(acl.mdl.ri_capture_get_info(self.one))[1]
        handle = self.ok(acl.mdl.ri_cond_handle_create(graph, 3, 1))
        word = self.ok(acl.mdl.ri_cond_handle_get_cond_ptr(handle))
        bodies = self.ok(acl.mdl.ri_add_cond_task(
            {"handle": handle, "type": acl.ACL_MODEL_RI_COND_TYPE_WHILE, "size": 1}, self.one, 0))
        self.assertEqual(len(bodies), 1)
        self.ok(acl.mdl.ri_capture_to_model_ri_begin(self.two, bodies[0], RELAXED))
        self.launch(0, self.two)
        function = self.ok(acl.rt.binary_get_function(self.binary, "subtract_one"))
        argument = ctypes.c_uint64(word)
        self.ok(acl.rt.launch_kernel_with_host_args(function, 1, self.two, [],
                                                    ctypes.addressof(argument), 8, []))
        self.ok(acl.mdl.ri_capture_end(self.two))
        self.ok(acl.mdl.ri_capture_end(self.one))
        self.addCleanup(acl.mdl.ri_destroy, graph)
        self.run_graph(graph)
        self.assertEqual(self.word(0), 3)

    def test_wrong_conditions(self):
        for wrong in (None, {"handle": "x"}, {"size": 70000}, {"modelRIArray": 1}):
            with self.subTest(wrong), self.assertRaises(TypeError):
                acl.mdl.ri_add_cond_task(wrong, self.one, 0)
        self.assertEqual(acl.mdl.ri_add_cond_task({"size": 1}, self.one, 0)[0], [])


class Built(Graph):
    def persistent(self):
        return self.ok(acl.rt.create_stream_with_config(0, acl.ACL_STREAM_PERSISTENT))

    def test_streams_labels_and_an_end(self):
        head, other = self.persistent(), self.persistent()
        graph = self.ok(acl.mdl.ri_build_begin(0))
        self.ok(acl.mdl.ri_bind_stream(graph, head, acl.ACL_MODEL_STREAM_FLAG_HEAD))
        self.ok(acl.mdl.ri_bind_stream(graph, other, acl.ACL_MODEL_STREAM_FLAG_DEFAULT))
        labels = [self.ok(acl.rt.create_label()) for _ in range(2)]
        chosen = self.ok(acl.rt.create_label_list(labels))
        self.ok(acl.rt.switch_label_by_index(self.words, 2, chosen, head))
        self.ok(acl.rt.set_label(labels[0], head))
        self.copy(2, 1, head)
        self.ok(acl.rt.set_label(labels[1], head))
        self.ok(acl.rt.active_stream(other, head))
        self.copy(3, 1, other)
        self.ok(acl.mdl.ri_end_task(graph, other))
        self.ok(acl.mdl.ri_build_end(graph, 0))
        self.write(1, 8)
        self.write(0, 1)  # past the first copy
        self.run_graph(graph)
        self.assertEqual((self.word(2), self.word(3)), (0, 8))
        self.write(0, 0)
        self.run_graph(graph)
        self.assertEqual(self.word(2), 8)
        for wrong in (None, [""], 5):
            with self.assertRaises(TypeError):
                acl.rt.create_label_list(wrong)
        self.assertNotEqual(acl.rt.create_label_list([])[1], 0)
        self.ok(acl.mdl.ri_destroy(graph))
        self.ok(acl.rt.destroy_label_list(chosen))
        for label in labels:
            self.ok(acl.rt.destroy_label(label))

    def test_a_switch_compares(self):
        head, other, last = (self.persistent() for _ in range(3))
        graph = self.ok(acl.mdl.ri_build_begin(0))
        self.ok(acl.mdl.ri_bind_stream(graph, head, acl.ACL_MODEL_STREAM_FLAG_HEAD))
        for stream in (other, last):
            self.ok(acl.mdl.ri_bind_stream(graph, stream, acl.ACL_MODEL_STREAM_FLAG_DEFAULT))
        self.ok(acl.rt.switch_stream(self.words, acl.ACL_RT_GREATER, self.words + 8,
                                     acl.ACL_RT_SWITCH_INT64, other, 0, head))
        for index, stream in ((2, head), (3, other)):
            self.launch(index, stream)
            self.ok(acl.rt.active_stream(last, stream))
        self.ok(acl.mdl.ri_end_task(graph, last))
        self.ok(acl.mdl.ri_build_end(graph, 0))
        self.write(1, 4)
        for value, counts in ((3, (1, 0)), (5, (1, 1)), (4, (2, 1))):
            self.write(0, value)
            self.run_graph(graph)
            self.assertEqual((self.word(2), self.word(3)), counts)
        self.ok(acl.mdl.ri_destroy(graph))


class Functions(Graph):
    """Functions in stream order, which a graph calls in each run."""

    class Argument:
        pass

    def test_they_live_as_long_as_the_graph(self):
        seen, argument = [], self.Argument()
        watched = weakref.ref(argument)

        def note(given):
            seen.append(given is watched())
        self.ok(acl.mdl.ri_capture_begin(self.one, RELAXED))
        self.ok(acl.rt.launch_host_func(self.one, note, argument))
        graph = self.ok(acl.mdl.ri_capture_end(self.one))
        del argument
        for _ in range(3):
            self.run_graph(graph)
            gc.collect()
        self.assertEqual(seen, [True] * 3)
        self.assertIsNotNone(watched())
        self.ok(acl.mdl.ri_destroy(graph))
        gc.collect()
        self.assertIsNone(watched())

    def test_they_end_with_a_capture_that_fails(self):
        argument = self.Argument()
        watched = weakref.ref(argument)
        self.ok(acl.mdl.ri_capture_begin(self.one, RELAXED))
        self.ok(acl.mdl.ri_capture_task_grp_begin(self.one))
        self.assertNotEqual(acl.rt.launch_host_func(self.one, print, argument), 0)
        self.assertNotEqual(acl.mdl.ri_capture_end(self.one)[1], 0)
        event = self.ok(acl.rt.create_event_ex_with_flag(acl.ACL_EVENT_SYNC))
        self.ok(acl.mdl.ri_capture_begin(self.one, RELAXED))
        self.ok(acl.rt.record_event(event, self.one))
        self.ok(acl.rt.stream_wait_event(self.two, event))
        self.ok(acl.rt.launch_host_func(self.two, print, argument))
        self.assertEqual(acl.mdl.ri_capture_end(self.one),
                         (0, acl.ACL_ERROR_RT_STREAM_UNJOINED))
        del argument
        gc.collect()
        self.assertIsNone(watched())

    def test_callbacks_of_a_report_thread(self):
        seen, stop = [], []

        def serve(_):
            acl.rt.set_device(0)
            while not stop:
                acl.rt.process_report(100)
        thread = self.ok(acl.util.start_thread(serve, []))
        self.ok(acl.rt.subscribe_report(thread, self.one))
        graph = self.capture(lambda: self.ok(acl.rt.launch_callback(
            seen.append, 1, acl.ACL_CALLBACK_BLOCK, self.one)))
        self.run_graph(graph)
        self.run_graph(graph)
        self.assertEqual(seen, [1, 1])
        stop.append(True)
        self.ok(acl.util.stop_thread(thread))

    def test_streams_of_a_built_graph(self):
        seen = []
        stream = self.ok(acl.rt.create_stream_with_config(0, acl.ACL_STREAM_PERSISTENT))
        graph = self.ok(acl.mdl.ri_build_begin(0))
        self.ok(acl.mdl.ri_bind_stream(graph, stream, acl.ACL_MODEL_STREAM_FLAG_HEAD))
        self.ok(acl.rt.launch_host_func(stream, seen.append, [1]))
        self.ok(acl.mdl.ri_end_task(graph, stream))
        self.ok(acl.mdl.ri_build_end(graph, 0))
        self.run_graph(graph)
        self.run_graph(graph)
        self.assertEqual(seen, [[1], [1]])
        self.ok(acl.mdl.ri_destroy(graph))


class Ends(Graph):
    def test_functions_are_called_once_in_order(self):
        seen = []
        self.ok(acl.mdl.ri_capture_begin(self.one, RELAXED))
        graph = self.ok(acl.mdl.ri_capture_end(self.one))
        register = acl.mdl.ri_destroy_register_callback
        self.ok(register(graph, seen.append, 1))
        self.ok(register(graph, lambda v: seen.append(v * 10), 2))
        self.ok(register(graph, seen.append, 3))
        gone = seen.append
        self.ok(acl.mdl.ri_destroy_unregister_callback(graph, gone))  # the first that is equal
        self.assertEqual(acl.mdl.ri_destroy_unregister_callback(graph, print),
                         acl.ACL_ERROR_RT_PARAM_INVALID)
        self.ok(acl.mdl.ri_destroy(graph))
        self.assertEqual(seen, [20, 3])
        self.assertEqual(register(graph, seen.append, 4), acl.ACL_ERROR_RT_INVALID_HANDLE)
        self.assertEqual(acl.mdl.ri_destroy_unregister_callback(graph, seen.append),
                         acl.ACL_ERROR_RT_INVALID_HANDLE)
        self.assertEqual(seen, [20, 3])

    def test_the_last_one_may_be_taken_back(self):
        seen = []
        self.ok(acl.mdl.ri_capture_begin(self.one, RELAXED))
        graph = self.ok(acl.mdl.ri_capture_end(self.one))
        for _ in range(2):
            self.ok(acl.mdl.ri_destroy_register_callback(graph, seen.append, 1))
            self.ok(acl.mdl.ri_destroy_unregister_callback(graph, seen.append))
        self.ok(acl.mdl.ri_destroy(graph))
        self.assertEqual(seen, [])

    def test_nothing_is_kept_and_failures_are_told(self):
        class Argument:
            pass
        told, hook, argument = [], sys.unraisablehook, Argument()
        watched = weakref.ref(argument)
        self.ok(acl.mdl.ri_capture_begin(self.one, RELAXED))
        graph = self.ok(acl.mdl.ri_capture_end(self.one))

        def fails(_):
            raise KeyError("lost")
        self.ok(acl.mdl.ri_destroy_register_callback(graph, fails, argument))
        del argument
        sys.unraisablehook = lambda info: told.append(type(info.exc_value))
        try:
            self.ok(acl.mdl.ri_destroy(graph))
        finally:
            sys.unraisablehook = hook
        gc.collect()
        self.assertEqual(told, [KeyError])
        self.assertIsNone(watched())

    def test_graphs_that_end_with_their_context(self):
        seen = []
        context = self.ok(acl.rt.create_context(0))
        stream = self.ok(acl.rt.create_stream())
        self.ok(acl.mdl.ri_capture_begin(stream, RELAXED))
        graph = self.ok(acl.mdl.ri_capture_end(stream))
        self.ok(acl.mdl.ri_destroy_register_callback(graph, seen.append, "end"))
        self.ok(acl.rt.destroy_context(context))
        self.assertEqual(seen, ["end"])


if __name__ == "__main__":
    unittest.main()

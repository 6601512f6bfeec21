# SPDX-License-Identifier: Apache-2.0
"""Streams, events, notifies: order, states, times."""
import threading
import unittest

import acl
from acl_case import Case, D2D


class Stream(Case):
    def test_life(self):
        for stream in (self.ok(acl.rt.create_stream()),
                       self.ok(acl.rt.create_stream_with_config(0, acl.ACL_STREAM_FAST_LAUNCH))):
            self.assertEqual(acl.rt.stream_query(stream), (acl.ACL_STREAM_STATUS_COMPLETE, 0))
            self.assertEqual(acl.rt.stream_get_id(stream)[1], 0)
            self.ok(acl.rt.synchronize_stream(stream))
            self.ok(acl.rt.synchronize_stream_with_timeout(stream, 600000))
            self.ok(acl.rt.destroy_stream(stream))
            self.assertNotEqual(acl.rt.destroy_stream(stream), 0)

    def test_configuration_handle(self):
        import ctypes
        handle = acl.rt.create_stream_config_handle()
        priority = ctypes.c_uint32(0)
        self.ok(acl.rt.set_stream_config_opt(handle, acl.ACL_RT_STREAM_PRIORITY,
                                             ctypes.addressof(priority), 4))
        stream = self.ok(acl.rt.create_stream_v2(handle))
        self.assertEqual(acl.rt.stream_get_priority(stream), (0, 0))
        self.ok(acl.rt.destroy_stream_config_handle(handle))
        self.ok(acl.rt.destroy_stream(stream))
        with self.assertRaisesRegex(ValueError, "cannot read 4 bytes"):
            acl.rt.set_stream_config_opt(handle, acl.ACL_RT_STREAM_PRIORITY, 16, 4)

    def test_attributes(self):
        stream = self.stream()
        tag = acl.ACL_STREAM_ATTR_USER_CUSTOM_TAG
        self.ok(acl.rt.set_stream_attribute(stream, tag, {"userCustomTag": 77}))
        self.assertEqual(acl.rt.get_stream_attribute(stream, tag), ({"userCustomTag": 77}, 0))
        self.assertEqual(acl.rt.get_stream_attribute(stream, acl.ACL_STREAM_ATTR_FAILURE_MODE),
                         ({"failureMode": 0}, 0))
        with self.assertRaises(TypeError):
            acl.rt.set_stream_attribute(stream, tag, {"failureMode": 0})
        with self.assertRaises(TypeError):
            acl.rt.set_stream_attribute(stream, tag, {})

    def test_an_event_orders_streams(self):
        a, b = self.stream(), self.stream()
        gate, told = threading.Event(), []
        first, second, third = self.malloc(64), self.malloc(64), self.malloc(64)
        self.put(first, b"1" * 64)
        self.put(second, b"2" * 64)
        event = self.ok(acl.rt.create_event_ex_with_flag(acl.ACL_EVENT_SYNC))
        self.ok(acl.rt.launch_host_func(a, lambda gate: told.append(gate.wait(600)), gate))
        self.ok(acl.rt.memcpy_async(second, 64, first, 64, D2D, a))
        self.ok(acl.rt.record_event(event, a))
        self.ok(acl.rt.stream_wait_event(b, event))
        self.ok(acl.rt.memcpy_async(third, 64, second, 64, D2D, b))
        self.assertEqual(acl.rt.query_event_status(event),
                         (acl.ACL_EVENT_RECORDED_STATUS_NOT_READY, 0))
        gate.set()
        self.ok(acl.rt.synchronize_stream(b))
        self.assertEqual(self.get(third, 64), b"1" * 64)
        self.assertEqual(told, [True])
        self.assertEqual(acl.rt.query_event_status(event),
                         (acl.ACL_EVENT_RECORDED_STATUS_COMPLETE, 0))
        self.ok(acl.rt.destroy_event(event))

    def test_times(self):
        stream = self.stream()
        start = self.ok(acl.rt.create_event_with_flag(acl.ACL_EVENT_TIME_LINE))
        end = self.ok(acl.rt.create_event_with_flag(acl.ACL_EVENT_TIME_LINE))
        self.ok(acl.rt.record_event(start, stream))
        self.ok(acl.rt.record_event(end, stream))
        self.ok(acl.rt.synchronize_event(end))
        self.ok(acl.rt.synchronize_event_with_timeout(end, 600000))
        milliseconds = self.ok(acl.rt.event_elapsed_time(start, end))
        self.assertIsInstance(milliseconds, float)
        self.assertGreaterEqual(milliseconds, 0)
        first = self.ok(acl.rt.event_get_timestamp(start))
        self.assertGreaterEqual(self.ok(acl.rt.event_get_timestamp(end)), first)
        self.assertEqual(acl.rt.get_event_id(start)[1], 0)
        for event in (start, end):
            self.ok(acl.rt.destroy_event(event))

    def test_notify(self):
        a, b = self.stream(), self.stream()
        notify = self.ok(acl.rt.create_notify(0))
        self.ok(acl.rt.wait_and_reset_notify(notify, b, 0))
        self.ok(acl.rt.record_notify(notify, a))
        self.ok(acl.rt.synchronize_stream(b))
        self.assertEqual(acl.rt.get_notify_id(notify)[1], 0)
        self.ok(acl.rt.notify_batch_reset([notify]))
        for timeout in (-1, 1 << 32):
            with self.assertRaises(TypeError):
                acl.rt.wait_and_reset_notify(notify, b, timeout)
        self.ok(acl.rt.destroy_notify(notify))

    def test_counting_notify(self):
        a, b = self.stream(), self.stream()
        notify = self.ok(acl.rt.cnt_notify_create(0))
        wait = {"mode": acl.ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, "value": 3, "timeout": 0}
        record = {"mode": acl.ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, "value": 3}
        self.ok(acl.rt.cnt_notify_wait_with_timeout(notify, b, wait))
        self.ok(acl.rt.cnt_notify_record(notify, a, record))
        self.ok(acl.rt.synchronize_stream(b))
        self.ok(acl.rt.cnt_notify_destroy(notify))

    def test_values(self):
        stream, memory = self.stream(), self.malloc(64)
        self.ok(acl.rt.value_write(memory, 0x1122334455667788, 0, stream))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.get(memory, 8), bytes.fromhex("8877665544332211"))

    def test_the_interpreter_runs_while_a_call_waits(self):
        stream, gate, seen = self.stream(), threading.Event(), []
        self.ok(acl.rt.launch_host_func(stream, lambda _: gate.wait(600), None))

        def other():
            seen.append("ran")
            gate.set()
        thread = threading.Thread(target=other)
        thread.start()  # needs the interpreter's lock while the main thread is in C
        self.ok(acl.rt.synchronize_stream(stream))
        thread.join()
        self.assertEqual(seen, ["ran"])

    def test_a_wait_that_times_out(self):
        stream, gate = self.stream(), threading.Event()
        self.ok(acl.rt.launch_host_func(stream, lambda _: gate.wait(600), None))
        self.assertEqual(acl.rt.synchronize_stream_with_timeout(stream, 1),
                         acl.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
        gate.set()
        self.ok(acl.rt.synchronize_stream(stream))


if __name__ == "__main__":
    unittest.main()

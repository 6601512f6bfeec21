# SPDX-License-Identifier: Apache-2.0
"""Kernel binaries from Python: load, arguments, launches, and tasks that fail."""
import ctypes
import os
import struct
import unittest

import acl
from acl_case import Case

BINARY = os.environ["TEST_KERNELS"]


class Kernel(Case):
    def setUp(self):
        super().setUp()
        self.binary = self.ok(acl.rt.binary_load_from_file(BINARY, []))
        self.addCleanup(acl.rt.binary_unload, self.binary)
        self.value = self.malloc(64)
        self.ok(acl.rt.memset(self.value, 64, 0, 64))

    def function(self, name="add_one"):
        return self.ok(acl.rt.binary_get_function(self.binary, name))

    def counted(self):
        return struct.unpack("I", self.get(self.value, 4))[0]

    def test_names(self):
        function = self.function()
        self.assertEqual(acl.rt.get_function_name(function, 100), ("add_one", 0))
        self.assertEqual(acl.rt.function_get_binary(function), (self.binary, 0))
        self.assertEqual(acl.rt.binary_get_function(self.binary, "no_such")[0], 0)

    def arguments(self):
        """A kernel's arguments in card memory."""
        memory = self.malloc(64)
        self.put(memory, struct.pack("Q", self.value))
        return memory

    def test_launch(self):
        stream, arguments = self.stream(), self.arguments()
        on_host = ctypes.c_uint64(self.value)
        self.ok(acl.rt.launch_kernel(self.function(), 1, arguments, 8, stream))
        self.ok(acl.rt.launch_kernel_v2(self.function(), 1, arguments, 8, [], stream))
        self.ok(acl.rt.launch_kernel_with_host_args(self.function(), 1, stream, [],
                                                    ctypes.addressof(on_host), 8, []))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.counted(), 3)

    def test_argument_lists(self):
        stream, argument = self.stream(), ctypes.c_uint64(self.value)
        function = self.function()
        for cfg in ([], [{"id": acl.ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT, "value": 10}]):
            arguments = self.ok(acl.rt.kernel_args_init(function))
            self.ok(acl.rt.kernel_args_append(arguments, ctypes.addressof(argument), 8))
            self.ok(acl.rt.kernel_args_finalize(arguments))
            self.ok(acl.rt.launch_kernel_with_config(function, 1, stream, cfg, arguments, 0))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.counted(), 2)

    def test_arguments_one_by_one(self):
        stream, function = self.stream(), self.function()
        argument = ctypes.c_uint64(self.value)
        self.assertEqual(acl.rt.function_get_param_count(function), (1, 0))
        self.assertEqual(acl.rt.function_get_param_info(function, 0), (0, 8, 0))
        places = [ctypes.addressof(argument)]
        self.ok(acl.rt.launch_kernel_with_args_array(function, 1, stream, [], places))
        argument.value = 0  # a launch has its copy
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.counted(), 1)
        launch = acl.rt.launch_kernel_with_args_array
        self.assertEqual(launch(function, 1, stream, [], []), acl.ACL_ERROR_RT_PARAM_INVALID)
        self.assertEqual(launch(function, 1, stream, [], [16]), acl.ACL_ERROR_RT_PARAM_INVALID)
        self.assertNotEqual(launch(12345, 1, stream, [], places), 0)
        for wrong in (None, ["x"], 5):
            with self.assertRaises(TypeError):
                launch(function, 1, stream, [], wrong)

    def test_argument_lists_in_memory_of_the_program(self):
        stream, function = self.stream(), self.function()
        argument = ctypes.c_uint64(self.value)
        handle = ctypes.create_string_buffer(
            self.ok(acl.rt.kernel_args_get_handle_mem_size(function)))
        size = self.ok(acl.rt.kernel_args_get_mem_size(function, 8))
        block = ctypes.create_string_buffer(size)
        arguments = ctypes.addressof(handle)
        self.ok(acl.rt.kernel_args_init_by_user_mem(function, arguments, ctypes.addressof(block),
                                                    size))
        self.ok(acl.rt.kernel_args_append(arguments, ctypes.addressof(argument), 8))
        self.ok(acl.rt.kernel_args_finalize(arguments))
        self.ok(acl.rt.launch_kernel_with_config(function, 1, stream, [], arguments, 0))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.counted(), 1)
        self.assertNotEqual(acl.rt.kernel_args_init_by_user_mem(function, arguments, 16, size), 0)

    def test_what_lies_in_a_binary(self):
        address, size = self.ok(acl.rt.binary_get_global(self.binary, "step_width"))
        self.assertEqual((ctypes.c_uint32.from_address(address).value, size), (1, 4))
        function = self.function()
        cube, vector = self.ok(acl.rt.get_function_addr(function))
        self.assertEqual(cube, vector)
        self.assertGreater(cube, 0)
        self.assertGreater(self.ok(acl.rt.get_function_size(function))[0], 0)
        self.assertEqual(acl.rt.function_get_avail_dyn_ubuf_per_block(function, 0), (0, 0))
        self.assertEqual(acl.rt.binary_get_global(self.binary, "no_such")[:2], (0, 0))

    def test_overflow(self):
        stream, function, out = self.stream(), self.function("square"), self.malloc(64)
        argument = ctypes.c_uint64(self.value)

        def status(read, *more):
            self.ok(read(out, 64, *more, stream))
            self.ok(acl.rt.synchronize_stream(stream))
            return struct.unpack("I", self.get(out, 4))[0]
        self.ok(acl.rt.set_stream_overflow_switch(stream, 1))
        for reset, read in ((acl.rt.reset_float_overflow_status,
                             lambda: status(acl.rt.get_float_overflow_status)),
                            (lambda s: acl.rt.npu_clear_float_over_flow_status(0, s),
                             lambda: status(acl.rt.npu_get_float_over_flow_status, 0))):
            self.put(self.value, struct.pack("f", 1e30))
            self.assertEqual(read(), 0)
            self.ok(acl.rt.launch_kernel_with_host_args(function, 1, stream, [],
                                                        ctypes.addressof(argument), 8, []))
            self.assertEqual(read(), 1)
            self.ok(reset(stream))
            self.assertEqual(read(), 0)

    def test_from_memory(self):
        with open(BINARY, "rb") as file:
            data = file.read()
        address = acl.util.bytes_to_ptr(data)
        binary = self.ok(acl.rt.binary_load_from_data(address, len(data), []))
        self.ok(acl.rt.binary_unload(binary))
        description = acl.rt.create_binary(address, len(data))
        binary = self.ok(acl.rt.binary_load(description))
        self.ok(acl.rt.binary_unload(binary))
        self.ok(acl.rt.destroy_binary(description))

    def test_memory_that_is_not_there(self):
        function, stream = self.function(), self.stream()
        arguments = self.ok(acl.rt.kernel_args_init(function))
        for call in (lambda a: acl.rt.create_binary(a, 4096),
                     lambda a: acl.rt.binary_load_from_data(a, 4096, []),
                     lambda a: acl.rt.launch_kernel_with_host_args(function, 1, stream, [], a, 8,
                                                                   []),
                     lambda a: acl.rt.kernel_args_append(arguments, a, 8)):
            for address in (16, 0xdead0000, (1 << 64) - 4, self.value):
                with self.assertRaises(ValueError):
                    call(address)

    def test_options_must_be_right(self):
        for options in (None, {}, [1], [{"kind": 1}], [{"type": "x"}], [{"type": 1 << 40}]):
            with self.assertRaises(TypeError):
                acl.rt.binary_load_from_file(BINARY, options)
        self.assertNotEqual(acl.rt.binary_load_from_file("/no/such", [])[1], 0)
        with self.assertRaisesRegex(TypeError, "NUL"):
            acl.rt.binary_load_from_file("a\0b", [])

    def test_a_task_that_fails_is_told(self):
        seen, stream = [], self.stream()

        def told(info):
            seen.append((acl.rt.get_error_code_from_exception_info(info),
                         acl.rt.get_device_id_from_exception_info(info),
                         acl.rt.get_stream_id_from_exception_info(info)))
        other = []
        self.ok(acl.rt.set_exception_info_callback(told))
        self.ok(acl.rt.exception_info_callback_register(other.append))
        self.ok(acl.rt.launch_kernel(self.function("trap"), 1, self.arguments(), 8, stream))
        self.assertNotEqual(acl.rt.synchronize_stream(stream), 0)
        self.assertEqual(len(seen), 1)
        self.assertNotEqual(seen[0][0], 0)
        self.assertEqual(seen[0][1], 0)
        self.assertEqual(seen[0][2], self.ok(acl.rt.stream_get_id(stream)))
        self.assertEqual(len(other), 1)
        self.ok(acl.rt.exception_info_callback_unregister(other.append))
        self.assertNotEqual(acl.rt.exception_info_callback_unregister(other.append), 0)
        self.ok(acl.rt.set_exception_info_callback(None))
        self.ok(acl.rt.set_exception_info_callback())
        self.ok(acl.rt.device_task_abort(0, 600000))

    def test_no_exception_at_all(self):
        self.assertEqual(acl.rt.get_task_id_from_exception_info(0), 0xffffffff)
        with self.assertRaises(ValueError):
            acl.rt.get_task_id_from_exception_info(16)


if __name__ == "__main__":
    unittest.main()

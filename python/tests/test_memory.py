# SPDX-License-Identifier: Apache-2.0
"""acl.rt: device and host memory, copies, sets, what is told of an address."""
import unittest

import acl
from acl_case import Case, D2D, D2H, H2D, HUGE_FIRST, MIB


class Memory(Case):
    def test_bytes_there_and_back(self):
        data = bytes(range(256)) * 16
        memory = self.malloc(len(data))
        self.put(memory, data)
        self.assertEqual(self.get(memory, len(data)), data)

    def test_all_ways_to_allocate(self):
        for malloc, policy in ((acl.rt.malloc, HUGE_FIRST), (acl.rt.malloc_align32, HUGE_FIRST),
                               (acl.rt.malloc_cached, acl.ACL_MEM_MALLOC_NORMAL_ONLY)):
            memory = self.ok(malloc(4096, policy))
            self.assertGreater(memory, 0)
            self.ok(acl.rt.free(memory))
        memory = self.ok(acl.rt.malloc(64, HUGE_FIRST))
        self.ok(acl.rt.free_with_dev_sync(memory))

    def test_an_allocation_that_fails_returns_0_and_the_code(self):
        self.assertEqual(acl.rt.malloc(0, HUGE_FIRST), (0, acl.ACL_ERROR_INVALID_PARAM))
        self.assertEqual(acl.rt.malloc(100 << 30, HUGE_FIRST),
                         (0, acl.ACL_ERROR_RT_MEMORY_ALLOCATION))
        self.assertIn("aclrtMalloc", acl.get_recent_err_msg())
        self.assertIsNone(acl.get_recent_err_msg())

    def test_free_twice(self):
        memory = self.ok(acl.rt.malloc(4096, HUGE_FIRST))
        self.ok(acl.rt.free(memory))
        self.assertEqual(acl.rt.free(memory), acl.ACL_ERROR_RT_PARAM_INVALID)

    def test_mem_info_is_free_and_total(self):
        before, total = self.ok(acl.rt.get_mem_info(acl.ACL_HBM_MEM))
        self.malloc(64 * MIB)
        after, again = self.ok(acl.rt.get_mem_info(acl.ACL_HBM_MEM))
        self.assertEqual(total, again)
        self.assertEqual(before - after, 66 * MIB)  # 32 bytes more than 32 frames

    def test_pinned_memory(self):
        host = self.ok(acl.rt.malloc_host(4096))
        self.ok(acl.rt.memset(host, 4096, 7, 4096))
        self.assertEqual(acl.util.ptr_to_bytes(host, 4096), b"\7" * 4096)
        self.ok(acl.rt.free_host(host))

    def test_memset(self):
        memory = self.malloc(100)
        self.ok(acl.rt.memset(memory, 100, 0x5a, 100))
        self.assertEqual(self.get(memory, 100), b"\x5a" * 100)
        self.assertEqual(acl.rt.memset(memory, 10, 0, 11), acl.ACL_ERROR_RT_PARAM_INVALID)
        self.ok(acl.rt.memset_d32(memory, 100, 0x01020304, 25))
        self.assertEqual(self.get(memory, 100), b"\x04\x03\x02\x01" * 25)

    def test_copy_between_blocks_and_too_much(self):
        a, b = self.malloc(64), self.malloc(64)
        self.put(a, b"x" * 64)
        self.ok(acl.rt.memcpy(b, 64, a, 64, D2D))
        self.assertEqual(self.get(b, 64), b"x" * 64)
        self.assertEqual(acl.rt.memcpy(b, 63, a, 64, D2D), acl.ACL_ERROR_RT_PARAM_INVALID)

    def test_memcpy2d(self):
        memory = self.malloc(64)
        rows = bytes(range(32))
        self.ok(acl.rt.memset(memory, 64, 0, 64))
        self.ok(acl.rt.memcpy2d(memory, 16, acl.util.bytes_to_ptr(rows), 8, 8, 4, H2D))
        got = self.get(memory, 64)
        for i in range(4):
            self.assertEqual(got[16 * i:16 * i + 16], rows[8 * i:8 * i + 8] + bytes(8))

    def test_asynchronous_copies(self):
        stream, memory = self.stream(), self.malloc(4096)
        host = self.ok(acl.rt.malloc_host(4096))
        back = self.ok(acl.rt.malloc_host(4096))
        self.ok(acl.rt.memset(host, 4096, 0x33, 4096))
        self.ok(acl.rt.memcpy_async(memory, 4096, host, 4096, H2D, stream))
        self.ok(acl.rt.memcpy_async(back, 4096, memory, 4096, D2H, stream))
        self.ok(acl.rt.memset_async(memory, 4096, 0, 4096, stream))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(acl.util.ptr_to_bytes(back, 4096), b"\x33" * 4096)
        self.assertEqual(self.get(memory, 4096), bytes(4096))
        self.ok(acl.rt.free_host(host))
        self.ok(acl.rt.free_host(back))

    def test_a_host_address_that_is_not_there(self):
        memory = self.malloc(64)
        for kind, dst, src in ((H2D, memory, 16), (D2H, 16, memory)):
            code = acl.rt.memcpy(dst, 64, src, 64, kind)
            self.assertEqual(code, acl.ACL_ERROR_RT_PARAM_INVALID)

    def test_pointer_attributes(self):
        memory = self.malloc(3 * MIB)
        attributes = self.ok(acl.rt.pointer_get_attributes(memory))
        self.assertEqual(attributes["location"],
                         {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_DEVICE})
        self.assertEqual(attributes["page_size"], 2 * MIB)
        self.assertEqual(attributes["rsv"], [0, 0, 0, 0])
        self.assertEqual(self.ok(acl.rt.mem_get_address_range(memory + 5)),
                         (memory, 3 * MIB + 32))
        self.assertEqual(self.ok(acl.rt.check_mem_type([memory], acl.ACL_RT_MEM_TYPE_DEV, 0)), 1)
        self.assertEqual(acl.rt.check_mem_type([], acl.ACL_RT_MEM_TYPE_DEV, 0),
                         (0, acl.ACL_ERROR_INVALID_PARAM))

    def test_configurations(self):
        cfg = {"attrs": [{"attr": acl.ACL_RT_MEM_ATTR_MODULE_ID, "value": {"moduleId": 3}}],
               "numAttrs": 1}
        for given in ({}, cfg):
            memory = self.ok(acl.rt.malloc_with_cfg(4096, HUGE_FIRST, given))
            self.ok(acl.rt.free(memory))
            memory = self.ok(acl.rt.malloc_for_task_scheduler(4096, HUGE_FIRST, given))
            self.ok(acl.rt.free(memory))
        host = self.ok(acl.rt.malloc_host_with_cfg(4096, cfg))
        self.ok(acl.rt.free_host(host))

    def test_the_attributes_of_a_configuration_reach_the_runtime(self):
        cfg = {"attrs": [{"attr": acl.ACL_RT_MEM_ATTR_DEVICE_ID, "value": {"deviceId": 9}}]}
        memory, code = acl.rt.malloc_with_cfg(4096, HUGE_FIRST, cfg)
        self.assertEqual(memory, 0)
        self.assertNotEqual(code, 0)
        self.assertIn("9", acl.get_recent_err_msg())

    def test_registered_memory(self):
        data = bytearray(3 * 4096)
        start = id(data)  # any address that is not aligned is refused, and nothing happens
        self.assertEqual(acl.rt.host_register(start | 1, 4096, acl.ACL_HOST_REGISTER_MAPPED)[0], 0)
        import mmap
        import numpy
        area = mmap.mmap(-1, 8192)
        address = acl.util.numpy_to_ptr(numpy.frombuffer(area, dtype=numpy.uint8))
        device = self.ok(acl.rt.host_register(address, 8192, acl.ACL_HOST_REGISTER_MAPPED))
        self.assertGreater(device, 0)
        self.ok(acl.rt.host_unregister(address))

    def test_batches_of_copies(self):
        memory = [self.malloc(64) for _ in range(3)]
        data = [bytes([i]) * 64 for i in range(3)]
        host = {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_HOST}
        card = {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_DEVICE}
        attrs = [{"dstLoc": card, "srcLoc": host}]
        pointers = [acl.util.bytes_to_ptr(d) for d in data]
        sizes = [64] * 3
        self.ok(acl.rt.memcpy_batch(memory, sizes, pointers, sizes, attrs, [0]))
        self.assertEqual([self.get(m, 64) for m in memory], data)
        self.ok(acl.rt.memcpy_batch_v2(memory, sizes, pointers, sizes, attrs, [0]))
        failed, code = acl.rt.memcpy_batch(memory, [64, 8, 64], pointers, sizes, attrs, [0])
        self.assertNotEqual(code, 0)
        self.assertIn(failed, (1, (1 << 64) - 1))

    def test_data_buffers(self):
        memory = self.malloc(64)
        buffer = acl.create_data_buffer(memory, 64)
        self.assertEqual(acl.get_data_buffer_addr(buffer), memory)
        self.assertEqual(acl.get_data_buffer_size(buffer), 64)
        self.assertEqual(acl.get_data_buffer_size_v2(buffer), 64)
        self.ok(acl.update_data_buffer(buffer, 0, 1 << 40))
        self.assertEqual(acl.get_data_buffer_size_v2(buffer), 1 << 40)
        self.ok(acl.destroy_data_buffer(buffer))
        self.assertEqual(acl.get_data_buffer_addr(buffer), 0)
        self.assertEqual(acl.destroy_data_buffer(0), acl.ACL_ERROR_INVALID_PARAM)


if __name__ == "__main__":
    unittest.main()

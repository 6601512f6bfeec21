# SPDX-License-Identifier: Apache-2.0
"""Virtual memory: reserve, make, map, use, and everything back."""
import unittest

import acl
from acl_case import Case, MIB


def properties(attribute=acl.ACL_HBM_MEM_HUGE):
    return {"handleType": acl.ACL_MEM_HANDLE_TYPE_NONE,
            "allocationType": acl.ACL_MEM_ALLOCATION_TYPE_PINNED,
            "memAttr": attribute, "reserve": 0,
            "location": {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_DEVICE}}


class VirtualMemory(Case):
    def test_round_trip(self):
        size = self.ok(acl.rt.mem_get_allocation_granularity(
            properties(), acl.ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM))
        self.assertEqual(size, 2 * MIB)
        address = self.ok(acl.rt.reserve_mem_address(4 * size, 0, 0, 1))
        handles = [self.ok(acl.rt.malloc_physical(size, properties(), 0)) for _ in range(2)]
        for i, handle in enumerate(handles):
            self.ok(acl.rt.map_mem(address + i * size, size, 0, handle, 0))
        data = bytes(range(256)) * 32
        self.put(address + size - 4096, data)  # over the seam
        self.assertEqual(self.get(address + size - 4096, len(data)), data)
        self.assertEqual(self.ok(acl.rt.mem_get_allocation_properties_from_handle(handles[0])),
                         properties())
        again = self.ok(acl.rt.mem_retain_allocation_handle(address))
        self.ok(acl.rt.free_physical(again))
        for i, handle in enumerate(handles):
            self.ok(acl.rt.unmap_mem(address + i * size))
            self.ok(acl.rt.free_physical(handle))
        self.ok(acl.rt.release_mem_address(address))

    def test_the_stable_address_keeps_nothing_of_the_old_handle(self):
        size = 2 * MIB
        address = self.ok(acl.rt.reserve_mem_address(size, 0, 0, 1))
        for content in (b"a", b"b"):
            handle = self.ok(acl.rt.malloc_physical(size, properties(), 0))
            self.ok(acl.rt.map_mem(address, size, 0, handle, 0))
            self.put(address, content * 64)
            self.assertEqual(self.get(address, 64), content * 64)
            self.ok(acl.rt.unmap_mem(address))
            self.ok(acl.rt.free_physical(handle))
        self.ok(acl.rt.release_mem_address(address))

    def test_access(self):
        size = 2 * MIB
        address = self.ok(acl.rt.reserve_mem_address(size, 0, 0, 1))
        handle = self.ok(acl.rt.malloc_physical(size, properties(), 0))
        self.ok(acl.rt.map_mem(address, size, 0, handle, 0))
        location = {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_DEVICE}
        self.ok(acl.rt.mem_set_access(address, size, [
            {"flags": acl.ACL_RT_MEM_ACCESS_FLAGS_READWRITE, "location": location}]))
        self.assertEqual(acl.rt.mem_get_access(address, location),
                         (acl.ACL_RT_MEM_ACCESS_FLAGS_READWRITE, 0))
        self.ok(acl.rt.unmap_mem(address))
        self.ok(acl.rt.free_physical(handle))
        self.ok(acl.rt.release_mem_address(address))

    def test_properties_must_be_right(self):
        size = 2 * MIB
        wrong = [None, [], 5, {}, {"location": 3}, {**properties(), "memattr": 1},
                 {**properties(), "memAttr": "huge"}, {**properties(), "memAttr": 1 << 40}]
        for prop in wrong:
            with self.subTest(prop), self.assertRaises(TypeError):
                acl.rt.malloc_physical(size, prop, 0)
        # What is left out is 0.
        short = {"memAttr": acl.ACL_HBM_MEM_HUGE, "location": properties()["location"]}
        self.ok(acl.rt.free_physical(self.ok(acl.rt.malloc_physical(size, short, 0))))
        self.assertNotEqual(acl.rt.malloc_physical(size, properties(77), 0)[1], 0)


if __name__ == "__main__":
    unittest.main()

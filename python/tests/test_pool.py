# SPDX-License-Identifier: Apache-2.0
"""Stream-ordered pools: attributes, blocks, and the figures of both."""
import unittest

import acl
from acl_case import Case, MIB

KEEP_ALL = (1 << 64) - 1


def properties(size=0):
    return {"allocType": acl.ACL_MEM_ALLOCATION_TYPE_PINNED,
            "handleType": acl.ACL_MEM_HANDLE_TYPE_NONE,
            "location": {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_DEVICE},
            "maxSize": size}


class Pools(Case):
    def figure(self, pool, name):
        return self.ok(acl.rt.mem_pool_get_attr(pool, getattr(acl, "ACL_RT_MEM_POOL_" + name)))

    def test_round_trip(self):
        pool = self.ok(acl.rt.mem_pool_create(properties()))
        self.ok(acl.rt.mem_pool_set_attr(pool, acl.ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, KEEP_ALL))
        self.assertEqual(self.figure(pool, "ATTR_RELEASE_THRESHOLD"), KEEP_ALL)
        stream = self.ok(acl.rt.create_stream())
        block = self.ok(acl.rt.mem_pool_malloc_async(3 * MIB, pool, stream))
        self.ok(acl.rt.memset_async(block, 3 * MIB, 7, 3 * MIB, stream))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.get(block, 16), b"\x07" * 16)
        self.assertEqual(self.figure(pool, "ATTR_USED_MEM_CURRENT"), 4 * MIB)
        self.ok(acl.rt.mem_pool_free_async(block, stream))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.figure(pool, "ATTR_USED_MEM_CURRENT"), 0)
        self.assertEqual(self.figure(pool, "ATTR_RESERVED_MEM_CURRENT"), 4 * MIB)
        self.ok(acl.rt.mem_pool_trim_to(pool, 0))
        self.assertEqual(self.figure(pool, "ATTR_RESERVED_MEM_CURRENT"), 0)
        self.assertEqual(self.figure(pool, "ATTR_USED_MEM_HIGH"), 4 * MIB)
        self.ok(acl.rt.destroy_stream(stream))
        self.ok(acl.rt.mem_pool_destroy(pool))

    def test_switches(self):
        pool = self.ok(acl.rt.mem_pool_create(properties(64 * MIB)))
        name = "REUSE_ALLOW_OPPORTUNISTIC"
        self.assertEqual(self.figure(pool, name), 0)
        self.ok(acl.rt.mem_pool_set_attr(pool, getattr(acl, "ACL_RT_MEM_POOL_" + name), 5))
        self.assertEqual(self.figure(pool, name), 1)
        self.ok(acl.rt.mem_pool_destroy(pool))
        self.assertEqual(acl.rt.mem_pool_destroy(pool), 507000)


if __name__ == "__main__":
    unittest.main()

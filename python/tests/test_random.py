# SPDX-License-Identifier: Apache-2.0
"""Random numbers, groups and architectures from Python."""
import copy
import struct
import unittest

import acl
from acl_case import Case

N = 64


def value(number, form):
    data = struct.pack(form, number)
    return {"isAddr": 0, "valueOrAddr": list(data), "size": len(data)}


class Random(Case):
    def setUp(self):
        super().setUp()
        self.one = self.stream()
        self.result, counter = self.malloc(N * 8), self.malloc(16)
        self.put(counter, bytes(16))
        self.info = {
            "dataType": acl.ACL_INT32,
            "randomNumFuncParaInfo": {
                "funcType": acl.ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS,
                "paramInfo": {"uniformDisInfo": {"min": value(1, "i"), "max": value(100, "i")}}},
            "randomResultAddr": self.result, "randomCounterAddr": counter,
            "randomSeed": value(7, "Q"), "randomNum": value(N, "Q")}

    def draw(self, form="i"):
        self.ok(acl.rt.random_num_async(self.info, self.one, 0))
        self.ok(acl.rt.synchronize_stream(self.one))
        size = struct.calcsize(form)
        return struct.unpack(str(N) + form, self.get(self.result, N * size))

    def test_uniform(self):
        first = self.draw()
        self.assertTrue(all(1 <= n < 100 for n in first))
        self.assertGreater(len(set(first)), N // 4)
        self.assertEqual(self.draw(), first)
        self.info["randomSeed"] = value(8, "Q")
        self.assertNotEqual(self.draw(), first)

    def test_normal(self):
        self.info["dataType"] = acl.ACL_FLOAT
        self.info["randomNumFuncParaInfo"] = {
            "funcType": acl.ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS,
            "paramInfo": {"normalDisInfo": {"mean": value(10, "f"), "stddev": value(1, "f")}}}
        self.assertTrue(all(8 <= n <= 12 for n in self.draw("f")))

    def test_a_parameter_on_the_card(self):
        first = self.draw()
        seed = self.malloc(8)
        self.put(seed, struct.pack("Q", 7))
        self.info["randomSeed"] = {**value(seed, "Q"), "isAddr": 1}
        self.assertEqual(self.draw(), first)

    def test_dicts_that_are_wrong(self):
        def change(*path, to):
            info = at = copy.deepcopy(self.info)
            for key in path[:-1]:
                at = at[key]
            if to is None:
                del at[path[-1]]
            else:
                at[path[-1]] = to
            return info
        function = "randomNumFuncParaInfo"
        for wrong in (None, {}, [], change("dataType", to="x"), change("seed", to=1),
                      change("randomSeed", to=None), change("randomSeed", to=7),
                      change("randomSeed", "valueOrAddr", to=[0] * 9),
                      change("randomSeed", "valueOrAddr", to=[256]),
                      change(function, to=None), change(function, to=5),
                      change(function, "funcType", to="x"), change(function, "more", to=1),
                      change(function, "paramInfo", to={}),
                      change(function, "paramInfo", to={"uniform": {}}),
                      change(function, "paramInfo", "normalDisInfo", to={}),
                      change(function, "paramInfo", "uniformDisInfo", "min", to=None)):
            with self.subTest(wrong), self.assertRaises(TypeError):
                acl.rt.random_num_async(wrong, self.one, 0)
        self.assertEqual(acl.rt.random_num_async(change("dataType", to=99), self.one, 0),
                         acl.ACL_ERROR_INVALID_PARAM)


class Others(Case):
    def test_architectures(self):
        self.assertEqual(acl.rt.check_arch_compatibility(acl.get_soc_name()), (1, 0))

    def test_groups(self):
        """The software card has none, and says so."""
        groups = acl.rt.create_group_info()
        none = acl.ACL_ERROR_RT_FEATURE_NOT_SUPPORT
        self.assertEqual(groups, 0)
        self.assertEqual(acl.rt.get_group_count(), (0, none))
        self.assertEqual(acl.rt.set_group(0), none)
        self.assertEqual(acl.rt.get_group_info_detail(0, 0, acl.ACL_GROUP_AICORE_INT)[0], [])
        self.assertNotEqual(acl.rt.get_all_group_info(groups), 0)
        self.assertNotEqual(acl.rt.destroy_group_info(groups), 0)

    def test_host_functions_of_a_subscribed_thread(self):
        import threading
        stream, seen = self.stream(), []
        me = threading.get_ident()
        self.ok(acl.rt.subscribe_host_func(me, stream))
        self.assertNotEqual(acl.rt.process_host_func(1), 0)
        self.ok(acl.rt.launch_host_func(stream, lambda v: seen.append((v, threading.get_ident())), 5))
        self.ok(acl.rt.process_host_func(600000))
        self.ok(acl.rt.synchronize_stream(stream))
        self.assertEqual(seen, [(5, me)])
        self.ok(acl.rt.unsubscribe_host_func(me, stream))


if __name__ == "__main__":
    unittest.main()

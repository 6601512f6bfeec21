# SPDX-License-Identifier: Apache-2.0
"""Initialisation, devices, contexts, versions, limits."""
import unittest

import acl
from acl_case import Case


class Device(Case):
    def test_init_counts(self):
        self.assertEqual(acl.init(), acl.ACL_ERROR_REPEAT_INITIALIZE)
        self.assertEqual(acl.finalize_reference(), (1, 0))

    def test_init_takes_a_path_or_none(self):
        self.ok(acl.finalize())
        self.ok(acl.init(None))
        self.ok(acl.finalize())
        self.assertEqual(acl.init("/no/such/file.json"), acl.ACL_ERROR_INVALID_FILE)
        self.ok(acl.init())

    def test_device(self):
        self.assertEqual(acl.rt.get_device(), (0, 0))
        self.assertEqual(acl.rt.get_device_count(), (1, 0))
        self.assertEqual(acl.rt.get_run_mode(), (acl.ACL_HOST, 0))
        self.assertEqual(acl.rt.set_device(7), acl.ACL_ERROR_RT_INVALID_DEVICEID)
        self.assertEqual(acl.get_soc_name(), "Ascend910B3")
        self.assertEqual(acl.get_version()[-1], 0)
        self.assertEqual(len(acl.get_version()), 4)

    def test_ids(self):
        for call in (acl.rt.get_logic_dev_id_by_user_dev_id, acl.rt.get_user_dev_id_by_logic_dev_id,
                     acl.rt.get_logic_dev_id_by_phy_dev_id, acl.rt.get_phy_dev_id_by_logic_dev_id,
                     acl.rt.get_phy_dev_id_by_user_dev_id, acl.rt.get_user_dev_id_by_phy_dev_id):
            self.assertEqual(call(0), (0, 0))
        name = self.ok(acl.rt.device_get_pci_bus_id(0, 32))
        self.assertEqual(acl.rt.device_get_by_pci_bus_id(name), (0, 0))
        with self.assertRaisesRegex(ValueError, "above 1023"):
            acl.rt.get_function_name(0, 1024)

    def test_uuid_is_16_bytes(self):
        uuid = self.ok(acl.rt.device_get_uuid(0))
        self.assertEqual(list(uuid), ["bytes"])
        self.assertEqual(len(uuid["bytes"]), 16)
        self.assertTrue(all(0 <= b < 256 for b in uuid["bytes"]))

    def test_utilization_has_the_keys_of_pyacl(self):
        rate = self.ok(acl.rt.get_device_utilization_rate(0))
        self.assertEqual(rate["memory_utilization"], -1)
        self.assertEqual(set(rate), {"cube_utilization", "vector_utilization",
                                     "aicpu_utilization", "memory_utilization",
                                     "utilization_extend"})

    def test_capabilities(self):
        names, n = self.ok(acl.get_cann_attribute_list())
        self.assertEqual(len(names), n)
        for name in names:
            self.assertIn(acl.get_cann_attribute(name), ((0, 0), (1, 0)))
        self.assertEqual(acl.get_device_capability(0, acl.ACL_DEVICE_INFO_VECTOR_CORE_NUM)[1], 0)
        least, greatest = self.ok(acl.rt.device_get_stream_priority_range())
        self.assertGreaterEqual(least, greatest)
        version, code = acl.get_cann_version(acl.ACL_PKG_NAME_CANN)
        self.assertEqual(set(version), {"version", "major_version", "minor_version",
                                        "release_version", "patch_version", "reserved"})
        self.assertIsInstance(code, int)

    def test_types_and_floats(self):
        self.assertEqual(acl.data_type_size(acl.ACL_FLOAT16), 2)
        self.assertEqual(acl.data_type_size(acl.ACL_INT64), 8)
        self.assertEqual(acl.float_to_float16(1.5), 0x3e00)
        self.assertEqual(acl.float16_to_float(0x3e00), 1.5)
        self.assertEqual(acl.float_to_float16(1e300), 0x7bff)
        self.assertEqual(acl.float16_to_float(0x7c00), 65536.0)

    def test_contexts(self):
        default = self.ok(acl.rt.get_context())
        context = self.ok(acl.rt.create_context(0))
        self.assertEqual(acl.rt.get_context(), (context, 0))
        self.ok(acl.rt.set_context(default))
        self.ok(acl.rt.destroy_context(context))
        self.assertEqual(acl.rt.set_context(context), acl.ACL_ERROR_RT_CONTEXT_NULL)
        self.assertEqual(acl.rt.get_primary_ctx_state(0), (1, 0, 0))
        self.assertGreater(self.ok(acl.rt.ctx_get_current_default_stream()), 0)

    def test_system_parameters(self):
        option = acl.ACL_OPT_DETERMINISTIC
        self.ok(acl.rt.set_sys_param_opt(option, 1))
        self.assertEqual(acl.rt.get_sys_param_opt(option), (1, 0))
        self.ok(acl.rt.ctx_set_sys_param_opt(option, 0))
        self.assertEqual(acl.rt.ctx_get_sys_param_opt(option), (0, 0))
        self.ok(acl.rt.set_sys_param_opt(option, 0))

    def test_limits(self):
        kind = acl.ACL_RT_DEV_RES_CUBE_CORE
        full = self.ok(acl.rt.get_device_res_limit(0, kind))
        self.ok(acl.rt.set_device_res_limit(0, kind, full - 1))
        self.assertEqual(acl.rt.get_device_res_limit(0, kind), (full - 1, 0))
        self.ok(acl.rt.reset_device_res_limit(0))
        self.assertEqual(acl.rt.get_device_res_limit(0, kind), (full, 0))

    def test_last_error(self):
        thread = acl.ACL_RT_THREAD_LEVEL
        acl.rt.get_last_error(thread)
        self.assertEqual(acl.rt.free(12345), acl.ACL_ERROR_RT_PARAM_INVALID)
        self.assertEqual(acl.rt.peek_at_last_error(thread), acl.ACL_ERROR_RT_PARAM_INVALID)
        self.assertEqual(acl.rt.get_last_error(thread), acl.ACL_ERROR_RT_PARAM_INVALID)
        self.assertEqual(acl.rt.get_last_error(thread), 0)

    def test_memory_by_module_and_bad_pages(self):
        self.assertEqual(acl.rt.get_mem_uce_info(0, 4), ([], 0))
        usage, code = acl.rt.get_mem_usage_info(0, 16)
        self.assertEqual(code, 0)
        for item in usage:
            self.assertEqual(set(item), {"name", "cur_mem_size", "mem_peak_size", "reserved"})


if __name__ == "__main__":
    unittest.main()

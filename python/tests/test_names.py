# SPDX-License-Identifier: Apache-2.0
"""Every function of libascendcl.so has its Python name, or a reason why not."""
import inspect
import os
import subprocess
import unittest

import acl
import acl.mdl
import acl.rt
import acl.tdt
import acl.util
from acl_case import ROOT  # noqa: F401  scripts/ is on the path now
import gen_acl
import gen_pyacl

MODULES = {"acl": acl, "acl.mdl": acl.mdl, "acl.rt": acl.rt, "acl.tdt": acl.tdt,
           "acl.util": acl.util}


def exported():
    """The names that the shared object really has."""
    text = subprocess.run(["nm", "-D", "--defined-only", os.environ["LIBASCENDCL"]], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[2] for line in text.splitlines() if line.split()[2].startswith("acl")}


def methods(module):
    return {name for name, value in vars(module).items() if inspect.isbuiltin(value)}


class Names(unittest.TestCase):
    def setUp(self):
        self.spec = gen_pyacl.Spec()
        self.rows = {row.function: row for row in self.spec.rows}

    def test_every_exported_function_has_a_row(self):
        names = exported()
        self.assertGreater(len(names), 200)
        self.assertEqual(sorted(names - set(self.rows)), [])

    def test_a_row_names_a_function_or_a_reason(self):
        for row in self.rows.values():
            with self.subTest(row.function):
                if row.python == "-":
                    self.assertTrue(row.detail)
                    continue
                module, _, name = row.python.rpartition(".")
                self.assertTrue(callable(getattr(MODULES[module], name)))

    def test_there_is_nothing_without_a_row(self):
        named = {row.python for row in self.rows.values()}
        for module in ("acl", "acl.mdl", "acl.rt", "acl.tdt"):
            mine = {"%s.%s" % (module, name) for name in methods(MODULES[module])}
            self.assertEqual(mine - named, set())

    def test_a_missing_row_is_found(self):
        self.spec.rows = [r for r in self.spec.rows if r.function != "aclrtMalloc"]
        with self.assertRaisesRegex(gen_acl.SpecError, "no row for aclrtMalloc"):
            self.spec.check()

    def test_signatures_are_those_of_the_table(self):
        for row in self.rows.values():
            if row.python == "-":
                continue
            module, _, name = row.python.rpartition(".")
            shown = list(inspect.signature(getattr(MODULES[module], name)).parameters)
            wanted = [a.partition("=")[0] for a in gen_pyacl.python_arguments(self.spec, row)]
            self.assertEqual(shown, wanted)

    def test_names_of_pyacl_that_do_not_follow_a_rule(self):
        for name in ("set_context", "get_context", "unsubscribe_report", "binary_unload",
                     "memcpy2d", "memcpy2d_async", "set_op_execute_time_out",
                     "set_op_execute_timeout_v2", "get_op_timeout_interval", "malloc_align32"):
            self.assertTrue(callable(getattr(acl.rt, name)))
        for name in ("get_soc_name", "get_version", "get_version_str", "get_cann_version"):
            self.assertTrue(callable(getattr(acl, name)))

    def test_constants_are_those_of_the_headers(self):
        self.assertEqual(acl.ACL_MEM_MALLOC_HUGE_FIRST, 0)
        self.assertEqual(acl.ACL_MEMCPY_DEVICE_TO_HOST, 2)
        self.assertEqual(acl.ACL_ERROR_RT_MEMORY_ALLOCATION, 207001)
        self.assertEqual(acl.ACL_FLOAT16, 1)
        self.assertEqual(acl.ACL_DT_UNDEFINED, -1)
        for row in self.spec.c.types:
            if row.kind == "enum" and row.member.startswith("ACL_"):
                self.assertEqual(getattr(acl, row.member), int(row.value, 0), row.member)

    def test_the_profiler_is_our_own(self):
        self.assertFalse(hasattr(acl, "prof"))
        self.assertEqual({n for n in dir(acl.profiler) if n[0] != "_"},
                         {"MemOp", "Report", "analyze", "mark", "range_pop", "range_push", "report",
                          "start", "stop", "tag"})


if __name__ == "__main__":
    unittest.main()

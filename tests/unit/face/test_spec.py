#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The generator of the AscendCL face: what it refuses, and that it is stable.

Run: python3 -m unittest discover -s tests/unit/face
"""
import importlib.util
import pathlib
import shutil
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def load_generator():
    where = ROOT / "scripts/gen_acl.py"
    module_spec = importlib.util.spec_from_file_location("gen_acl", where)
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    return module


gen = load_generator()


class SpecTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for table in gen.SPEC.iterdir():
            shutil.copy(table, self.folder)

    def implement(self, *names):
        (self.folder / "implemented.txt").write_text("".join(n + "\n" for n in names))

    def refused(self, sentence):
        with self.assertRaisesRegex(gen.SpecError, sentence):
            gen.load(self.folder)

    def test_an_unknown_name_is_refused(self):
        self.implement("aclrtMaloc")
        self.refused("not in symbols.tsv: aclrtMaloc")

    def test_an_unsorted_list_is_refused(self):
        self.implement("aclrtMalloc", "aclrtFree")
        self.refused("not sorted, see aclrtMalloc")

    def test_a_name_given_twice_is_refused(self):
        self.implement("aclrtFree", "aclrtFree")
        self.refused("listed twice: aclrtFree")

    def test_a_note_for_an_unknown_function_is_refused(self):
        with (self.folder / "notes.tsv").open("a") as notes:
            notes.write("aclrtNothing\tDoes nothing.\n")
        self.refused("notes.tsv: not in symbols.tsv: aclrtNothing")

    def test_an_unknown_header_is_refused(self):
        with (self.folder / "errors.tsv").open("a") as errors:
            errors.write("ACL_ERROR_X\t1\tacl/none.h\n")
        self.refused("unknown header acl/none.h")

    def test_an_empty_list_makes_valid_files(self):
        self.implement()
        spec = gen.load(self.folder)
        self.assertIn("#define BLYI_ACL_SYMBOLS(X)\n", gen.render_symbols_header(spec))
        self.assertIn("BELAY_PRIVATE {\n};", gen.render_exports(spec))
        self.assertNotIn("        STUB(", gen.render_stubs(spec))

    def test_an_implemented_name_reaches_every_output(self):
        self.implement("aclrtFree")
        spec = gen.load(self.folder)
        self.assertIn("    X(aclrtFree)\n", gen.render_symbols_header(spec))
        self.assertIn("aclError bly_acl_aclrtFree(void *devPtr);", gen.render_symbols_header(spec))
        self.assertIn("        STUB(aclrtFree)\n", gen.render_stubs(spec))
        self.assertIn("        bly_acl_aclrtFree;\n", gen.render_exports(spec))
        self.assertIn("| `aclrtFree` | 1 | implemented |", gen.render_coverage(spec))

    def test_the_output_depends_on_the_tables_alone(self):
        first = gen.tree_files(gen.load(self.folder))
        second = gen.tree_files(gen.load(self.folder))
        self.assertEqual(first, second)

    def test_no_line_is_longer_than_the_limit(self):
        for path, text in gen.tree_files(gen.load(self.folder)).items():
            if path.startswith("include/"):
                longest = max(text.splitlines(), key=len)
                self.assertLessEqual(len(longest), gen.WIDTH, path + ": " + longest)

    def test_tier_1_and_2_functions_are_described(self):
        spec = gen.load(self.folder)
        bare = [s.name for s in spec.symbols if s.tier in "12" and s.name not in spec.notes]
        self.assertEqual(bare, [])


class TextTest(unittest.TestCase):
    def test_declarators(self):
        self.assertEqual(gen.declarator("uint32_t[4]", "rsv"), "uint32_t rsv[4]")
        self.assertEqual(gen.declarator("void *", "p"), "void *p")
        self.assertEqual(gen.declarator("int64_t[2][3]", "x"), "int64_t x[2][3]")

    def test_a_long_call_breaks_after_commas_only(self):
        text = gen.wrap_call("f(", ", ".join("const char *name%02d" % i for i in range(12)) + ");")
        for line in text.splitlines()[:-1]:
            self.assertTrue(line.endswith(","), line)

    def test_function_type(self):
        kind = gen.function_type("void *f(int a, void *b)", "f")
        self.assertEqual(kind, "void * (*)(int a, void *b)")


if __name__ == "__main__":
    unittest.main()

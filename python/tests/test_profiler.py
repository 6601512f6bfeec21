# SPDX-License-Identifier: Apache-2.0
"""acl.profiler: exact figures of what lies between start and stop, however the program was begun."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import acl
from acl_case import MIB, Case, belay, python

P = acl.profiler
MEMORY = acl.PROFILER_MEMORY_EVENT

PROGRAM = """import acl, json
acl.init(); acl.rt.set_device(0)
def layer(n):
    return acl.rt.malloc(n, 0)[0]
before = layer(1000)
acl.profiler.start(acl.PROFILER_MEMORY_EVENT)
acl.profiler.range_push("matmul")
a = [layer(1 << 20) for _ in range(3)]
acl.profiler.range_pop()
b = layer(500)
acl.profiler.tag(b, "kv-cache")
acl.rt.free(a.pop()); acl.rt.free(a.pop()); acl.rt.free(before)
c = layer(300)
acl.profiler.stop()
layer(1 << 24)
report = acl.profiler.analyze()
print(json.dumps([list(row) for row in report.top_mem_ops(5)]))
print(json.dumps([report.peak_bytes, report.total_bytes, report.left_bytes, report.refused]))
"""


class Profiler(Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.end)

    @staticmethod
    def end():
        try:
            P.stop()
        except RuntimeError:
            pass

    def test_figures(self):
        P.start(MEMORY)
        kept = [self.ok(acl.rt.malloc(MIB, 0)) for _ in range(3)]
        self.ok(acl.rt.free(kept.pop()))
        self.assertNotEqual(acl.rt.malloc(1 << 40, 0)[1], 0)
        P.stop()
        report = P.analyze()
        for memory in kept:
            self.addCleanup(acl.rt.free, memory)
        self.assertIs(report, P.report)
        self.assertIs(report, P.analyze())
        top = report.top_mem_ops(5)
        self.assertEqual(len(top), 1)
        row = top[0]
        self.assertIsInstance(row, P.MemOp)
        self.assertRegex(row.name, r"(<listcomp>|test_figures) .*test_profiler\.py:\d+$")
        self.assertEqual(row.site, row.name)
        self.assertEqual(row[1:4], (3 * MIB, 1.0, 3))
        self.assertEqual(row[5:], (3 * MIB, 3, 2 * MIB, 2))
        self.assertEqual((report.peak_bytes, report.peak_blocks), (3 * MIB, 3))
        self.assertEqual((report.left_bytes, report.refused, report.lost), (2 * MIB, 1, 0))
        self.assertIn("3145728", str(report))
        self.assertIn("1 ops, peak 3145728 B", repr(report))

    def test_orders(self):
        P.start()
        for name, n, size in (("many", 10, 64), ("large", 1, 4096), ("passing", 3, 2048)):
            P.range_push(name)
            for _ in range(n):
                memory = self.ok(acl.rt.malloc(size, 0))
                if name == "passing":
                    self.ok(acl.rt.free(memory))
                else:
                    self.addCleanup(acl.rt.free, memory)
            P.range_pop()
        P.stop()
        report = P.analyze()
        names = {by: [row.name for row in report.top_mem_ops(by=by)]
                 for by in ("peak", "total", "count")}
        self.assertEqual(names["peak"], ["large", "passing", "many"])
        self.assertEqual(names["total"], ["passing", "large", "many"])
        self.assertEqual(names["count"], ["many", "passing", "large"])
        self.assertEqual(sum(row.share for row in report.top_mem_ops()), 1.0)
        self.assertEqual(report.top_mem_ops(2, "total")[0].share, 6144 / (6144 + 4096 + 640))
        self.assertEqual(report.top_mem_ops(0), [])
        self.assertEqual(len(report.top_mem_ops(sys.maxsize)), 3)

    def test_again_and_again(self):
        for size in (64, 128, 256):
            P.start(MEMORY)
            self.ok(acl.rt.free(self.ok(acl.rt.malloc(size, 0))))
            P.stop()
            self.assertEqual(P.analyze().peak_bytes, size)
        P.start()
        P.stop()
        report = P.analyze()
        self.assertEqual((report.peak_bytes, report.top_mem_ops(5)), (0, []))
        self.assertEqual(str(report).count("\n"), 2)

    def test_what_is_out_of_order(self):
        with self.assertRaisesRegex(RuntimeError, r"profiler\.stop: it was not started"):
            P.stop()
        P.start()
        with self.assertRaisesRegex(RuntimeError, "started already"):
            P.start()
        with self.assertRaisesRegex(RuntimeError, r"analyze: stop\(\) it first"):
            P.analyze()
        P.stop()
        with self.assertRaisesRegex(RuntimeError, "was not started"):
            P.stop()
        P.analyze()
        with self.assertRaisesRegex(RuntimeError, r"range_pop: .*"):
            P.range_pop()

    def test_what_is_wrong(self):
        for what in (0, 2, 3, -1, 1 << 70):
            with self.assertRaises((ValueError, OverflowError)):
                P.start(what)
        for stacks in (-1, 129):
            with self.assertRaisesRegex(ValueError, "frames; 0 to 128"):
                P.start(stacks=stacks)
        for path in ("a\0b", 5, ["x"]):
            with self.assertRaises((ValueError, TypeError)):
                P.start(path=path)
        with self.assertRaises(OSError):
            P.start(path="/no/such/folder/x.trace")
        with self.assertRaises(TypeError):
            P.start("memory")
        with self.assertRaises(TypeError):
            P.Report()
        for call in (P.range_push, P.mark):
            with self.assertRaises(TypeError):
                call(None)
            with self.assertRaises((ValueError, UnicodeEncodeError)):
                call("a\0b")
        with self.assertRaises(RuntimeError):
            P.tag(0, "nothing")
        P.start()
        P.stop()
        report = P.analyze()
        with self.assertRaisesRegex(ValueError, "by 'peak', 'total' or 'count', not 'size'"):
            report.top_mem_ops(1, "size")
        with self.assertRaisesRegex(ValueError, "n is -1 rows"):
            report.top_mem_ops(-1)
        with self.assertRaises(AttributeError):
            report.peak_bytes = 1

    def test_a_folder_that_is_full_or_gone(self):
        P.start()
        old = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = "/no/such/folder"
        try:
            with self.assertRaises(OSError):
                P.stop()
        finally:
            del os.environ["TMPDIR"]
            if old is not None:
                os.environ["TMPDIR"] = old
        P.stop()  # it went on
        self.assertEqual(P.analyze().peak_bytes, 0)

    def test_a_recording_that_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "kept.trace")
            P.start(MEMORY, path=path, stacks=4)
            self.ok(acl.rt.free(self.ok(acl.rt.malloc(777, 0))))
            P.stop()
            self.assertEqual(P.analyze().peak_bytes, 777)
            top = json.loads(subprocess.run([belay(), "top-ops", str(path), "--json"], check=True,
                                            stdout=subprocess.PIPE, text=True).stdout)
            self.assertEqual(top["peak"], 777)
            self.assertEqual(top["ops"][0]["name"], P.report.top_mem_ops(1)[0].name)

    def test_threads(self):
        """One of them wins each round; nothing is lost and nobody waits for ever."""
        errors = []

        def work():
            acl.rt.set_device(0)
            for _ in range(50):
                try:
                    P.start()
                    P.stop()
                    P.analyze()
                except RuntimeError as error:
                    errors.append(str(error))
                acl.rt.free(acl.rt.malloc(64, 0)[0])
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        known = ("started already", "was not started", "another thread", "stop() it first",
                 "nothing was recorded", "nothing is recorded", "no mark")
        self.assertEqual([e for e in errors if not any(k in e for k in known)], [])


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.script = self.folder / "p.py"
        self.script.write_text(PROGRAM)

    def figures(self, *command):
        result = subprocess.run([*command, sys.executable, str(self.script)], timeout=600,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()[:2]]

    def test_the_same_with_and_without_belay_run(self):
        layer = "layer %s:4" % self.script
        before = "made before recording, site unknown"
        peak = 3 * MIB + 1500
        for command, label in (((), before),
                               ((belay(), "run", "--report", "none", "--"), before),
                               ((belay(), "run", "--report", "none", "--trace",
                                 str(self.folder / "t.trace"), "--"), layer)):
            rows, sums = self.figures(*command)
            self.assertEqual(rows[0], ["matmul", 3 * MIB, 3 * MIB / peak, 3, layer, 3 * MIB, 3,
                                       MIB, 1])
            self.assertIn(["kv-cache", 500, 500 / peak, 1, layer, 500, 1, 500, 1], rows)
            if label == before:
                self.assertIn([before, 1000, 1000 / peak, 1, before, 1000, 1, 0, 0], rows)
                self.assertIn([layer, 0, 0.0, 0, layer, 300, 1, 300, 1], rows)
            else:
                self.assertIn([layer, 1000, 1000 / peak, 1, layer, 1300, 2, 300, 1], rows)
            self.assertEqual(sums, [peak, peak + 300, MIB + 800, 0])

    def test_a_recording_under_way_goes_on(self):
        self.figures(belay(), "run", "--report", "none", "--trace", str(self.folder / "t.trace"),
                     "--")
        top = json.loads(subprocess.run(
            [belay(), "top-ops", str(self.folder / "t.trace"), "--json"], check=True,
            stdout=subprocess.PIPE, text=True).stdout)
        self.assertEqual(top["peak"], (1 << 24) + MIB + 800)

    def test_a_path_beside_a_recording_under_way(self):
        code = "import acl; acl.init(); acl.rt.set_device(0); acl.profiler.start(path='x.trace')"
        result = python(code, belay(), "run", "--report", "none", "--trace",
                        str(self.folder / "t.trace"), "--")
        self.assertIn("a recording is under way", result.stderr)
        self.assertIn("RuntimeError", result.stderr)

    def test_a_recording_that_another_ended(self):
        result = python("""
import acl, ctypes, os
acl.init(); acl.rt.set_device(0)
acl.profiler.start()
ctypes.CDLL("libbelay.so.0").bly_trace_stop()
for call in (acl.profiler.stop, acl.profiler.analyze, acl.profiler.stop):
    try:
        call()
    except RuntimeError as error:
        print(error)
acl.profiler.start(); acl.profiler.stop(); print(acl.profiler.analyze().peak_bytes)
""", env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(os.environ["LIBASCENDCL"])})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("nothing is recorded", result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "0")

    def test_a_program_that_closes_descriptors(self):
        result = python("""
import acl, os
acl.init(); acl.rt.set_device(0)
acl.profiler.start(); acl.profiler.stop(); acl.profiler.analyze()
acl.profiler.start(); acl.profiler.stop()
os.closerange(3, 256)
mine = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]
for _ in range(2):  # never the report of what was before
    try:
        acl.profiler.analyze()
    except RuntimeError as error:
        print(error)
print(all(os.fstat(fd) for fd in mine))
""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("the program has closed the file that stop() left", result.stdout)
        self.assertIn("nothing was recorded", result.stdout)
        self.assertTrue(result.stdout.endswith("True\n"))

    def test_a_forked_child(self):
        result = python("""
import acl, os
acl.init(); acl.rt.set_device(0)
acl.profiler.start()
if os.fork() == 0:
    try:
        acl.profiler.stop()
    except RuntimeError as error:
        print("child:", error, flush=True)
    os._exit(0)
os.wait()
acl.rt.malloc(64, 0)
acl.profiler.stop()
print(acl.profiler.analyze().peak_bytes)
""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("child: acl.profiler.stop: ", result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "64")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Lines of Python as the places of what happened: sentences, reports, recordings, findings."""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

from acl_case import belay, python

# Qualified names are there since 3.11.
LAYER = "Net.layer" if sys.version_info >= (3, 11) else "layer"
LIST = "step.<locals>.<listcomp>" if sys.version_info >= (3, 11) else "<listcomp>"

PROGRAM = """import acl
class Net:
    def layer(self, n):
        return acl.rt.malloc(n, 0)[0]
def step(net):
    return [net.layer(1 << 20) for _ in range(2)]
def main():
    acl.init(); acl.rt.set_device(0)
    kept = step(Net()) + step(Net())
    acl.rt.free(kept[0])
    return kept
if __name__ == "__main__":
    main()
"""


class Frames(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.script = self.folder / "train.py"
        self.script.write_text(PROGRAM)

    def run_script(self, *options, **env):
        """The program under belay run; the folder has its recording."""
        return subprocess.run(
            [belay(), "run", "--trace", str(self.folder / "t.trace"), *options, "--",
             sys.executable, str(self.script)], env={**os.environ, **env}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, timeout=600, check=False)

    def belay(self, *arguments):
        result = subprocess.run([belay(), *arguments], stdout=subprocess.PIPE, check=False,
                                stderr=subprocess.STDOUT, text=True, timeout=600)
        return result.stdout

    def convert(self, form, *options):
        out = self.folder / ("out." + form)
        self.belay("trace", "convert", str(self.folder / "t.trace"), "--to", form, "-o", str(out),
                   *options)
        return out

    def test_sentences(self):
        result = python("""
import acl
acl.init(); acl.rt.set_device(0)
def make():
    return acl.rt.malloc(64, 0)[0]
p = make()
acl.rt.free(p)
acl.rt.free(p)
print(acl.get_recent_err_msg())
""")
        self.assertIn("at <module> <string>:7;", result.stdout)
        self.assertIn("was made at make <string>:5", result.stdout)

    def test_the_report_and_its_leaks(self):
        result = self.run_script()
        self.assertIn("leak: 3145728 B (3 MiB) in 3 blocks of card 0", result.stderr)
        self.assertIn("allocated at %s %s:4" % (LAYER, self.script), result.stderr)
        self.assertIn("4  %s %s:4\n" % (LAYER, self.script), result.stderr)

    def test_the_reports_json(self):
        out = self.folder / "r.json"
        self.run_script("--report", str(out))
        self.assertIn(LAYER, out.read_text())
        self.assertIn(str(self.script), json.dumps(json.loads(out.read_text())))

    def test_belay_of_a_recording(self):
        self.run_script("--report", "none")
        trace = str(self.folder / "t.trace")
        where = "%s %s:4" % (LAYER, self.script)
        top = json.loads(self.belay("top-ops", trace, "--json"))
        self.assertEqual([(op["name"], op["count"], op["peak_bytes"]) for op in top["ops"]],
                         [(where, 4, 4 << 20)])
        self.assertIn(where, self.belay("report", trace))
        self.assertIn("allocated at " + where, self.belay("check", trace))

    def test_stacks(self):
        self.run_script("--report", "none", BELAY_STACKS="16")
        line = self.convert("folded", "--weight", "total").read_text().splitlines()
        self.assertEqual(len(line), 1)
        script = self.script
        frames = ["<module> %s:13" % script, "main %s:9" % script, "step %s:6" % script,
                  "%s %s:6" % (LIST, script), "%s %s:4 4194304" % (LAYER, script)]
        if sys.version_info >= (3, 12):
            del frames[3]  # no frame of its own
        found = line[0].split(";")
        self.assertEqual(found[-len(frames):], frames)
        self.assertNotIn("Eval", line[0])
        self.assertNotIn("aclrtMalloc", line[0])
        with open(self.convert("snapshot"), "rb") as file:
            snapshot = pickle.load(file)
        stack = [e for e in snapshot["device_traces"][0] if e["action"] == "alloc"][0]["frames"]
        self.assertEqual((stack[0]["name"], stack[0]["filename"], stack[0]["line"]),
                         (LAYER, str(script), 4))

    def test_a_short_stack_is_the_innermost_lines(self):
        self.run_script("--report", "none", BELAY_STACKS="2")
        text = self.convert("folded", "--weight", "total").read_text()
        script = self.script
        frames = text.splitlines()[-1].split(";")[1:]  # behind the program
        self.assertEqual(len(frames), 2)
        self.assertTrue(frames[0].endswith(" %s:6" % script), frames[0])
        self.assertEqual(frames[1], "%s %s:4 4194304" % (LAYER, script))

    def test_names_that_mean_harm(self):
        result = python(r"""
import acl
acl.init(); acl.rt.set_device(0)
code = compile("def f(): return acl.rt.malloc(64, 0)[0]", "a\n\x1b[31m\udcff" + "d" * 3000, "exec")
names = {"acl": acl}
exec(code, names)
p = names["f"]()
acl.rt.free(p); acl.rt.free(p)
print(acl.get_recent_err_msg())
""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("was made at f ...ddd", result.stdout)
        self.assertEqual(result.stdout.count("\n"), 1)

    def test_many_code_objects(self):
        """More than are remembered at a time, each gone when the next one comes."""
        result = python("""
import acl
acl.init(); acl.rt.set_device(0)
for i in range(6000):
    exec(compile("\\n" * (i % 97) + "acl.rt.free(acl.rt.malloc(64, 0)[0])", "f%d" % i, "exec"))
exec(compile("p = acl.rt.malloc(64, 0)[0]\\nacl.rt.free(p)\\nacl.rt.free(p)", "last", "exec"))
print(acl.get_recent_err_msg())
""")
        self.assertIn("at <module> last:2;", result.stdout)
        self.assertIn("was made at <module> last:1", result.stdout)

    def test_threads_and_callbacks_have_their_own(self):
        result = python("""
import acl, threading
acl.init(); acl.rt.set_device(0)
kept = {}
def work():
    acl.rt.set_device(0)
    kept["thread"] = acl.rt.malloc(64, 0)[0]
def called(data):
    kept["callback"] = acl.rt.malloc_host(64)[0]
thread = threading.Thread(target=work); thread.start(); thread.join()
stream, ret = acl.rt.create_stream()
acl.rt.launch_host_func(stream, called, None); acl.rt.synchronize_stream(stream)
acl.rt.free(kept["thread"]); acl.rt.free(kept["thread"]); print(acl.get_recent_err_msg())
""")
        self.assertIn("was made at work <string>:7", result.stdout)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()

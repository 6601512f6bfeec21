# SPDX-License-Identifier: Apache-2.0
"""The module in whole programs: belay run, exits in any order, fork, spawn, Ctrl-C."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import acl
from acl_case import ROOT, belay, python

SITE = str(pathlib.Path(acl.__file__).parent)
BEGIN = "import acl, threading, time, os, sys, atexit\nacl.init(); acl.rt.set_device(0)\n"


def clean_environment(**more):
    """Without what ctest has set for this test."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    return {**env, **more}


class Program(unittest.TestCase):
    def run_ok(self, code, *command, env=None, output=None):
        result = python(code, *command, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        if output is not None:
            self.assertEqual(result.stdout, output, result.stderr)
        return result


class Run(Program):
    def test_belay_run_finds_the_module(self):
        code = BEGIN + "p, r = acl.rt.malloc(5 << 20, 0); print(acl.__file__, r)"
        result = self.run_ok(code, belay(), "run", "--", env=clean_environment(),
                             output="%s/acl.abi3.so 0\n" % SITE)
        self.assertIn("leak: 5242880 B (5 MiB) in 1 block of card 0", result.stderr)

    def test_belay_run_keeps_the_users_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "mine.py").write_text("name = 'mine'\n")
            pathlib.Path(folder, "acl.py").write_text("raise SystemExit('the wrong acl')\n")
            for path in (folder, "/no/such:" + folder):
                self.run_ok("import mine, acl, acl.rt; print(mine.name, bool(acl.rt.malloc))",
                            belay(), "run", "--report", "none", "--",
                            env=clean_environment(PYTHONPATH=path), output="mine True\n")
        self.run_ok("import os; print(os.environ['PYTHONPATH'])", belay(), "run", "--report",
                    "none", "--", env=clean_environment(PYTHONPATH=""), output=SITE + "\n")

    def test_without_belay_run(self):
        self.run_ok(BEGIN + "print(acl.get_soc_name())", env=clean_environment(PYTHONPATH=SITE),
                    output="Ascend910B3\n")

    def test_a_clean_program_has_no_finding(self):
        code = BEGIN + """
s, r = acl.rt.create_stream()
p, r = acl.rt.malloc(1 << 20, 0)
h, r = acl.rt.malloc_host(1 << 20)
b = bytes(range(256)) * 4096
o = bytes(bytearray(1 << 20))
assert acl.rt.memcpy(h, 1 << 20, acl.util.bytes_to_ptr(b), 1 << 20, 0) == 0
assert acl.rt.memcpy_async(p, 1 << 20, h, 1 << 20, 1, s) == 0
assert acl.rt.synchronize_stream(s) == 0
assert acl.rt.memcpy(acl.util.bytes_to_ptr(o), 1 << 20, p, 1 << 20, 2) == 0
assert o == b
for r in (acl.rt.free(p), acl.rt.free_host(h), acl.rt.destroy_stream(s), acl.rt.reset_device(0),
          acl.finalize()):
    assert r == 0
"""
        result = self.run_ok(code, belay(), "run", "--", env=clean_environment())
        self.assertIn("ERROR SUMMARY: 0 findings", result.stderr)

    def test_the_example_of_the_readme(self):
        readme = (ROOT / "README.md").read_text()
        code = readme.split("<<'EOF'\n")[1].split("\nEOF\n")[0]
        result = self.run_ok(code, belay(), "run", "--", env=clean_environment(),
                             output="on the card and back: True\n")
        self.assertIn("ERROR SUMMARY: 0 findings", result.stderr)

    def test_import_alone_starts_nothing(self):
        self.run_ok("import acl; print(len(os.listdir('/proc/self/task')))".replace(
            "import acl", "import acl, os"), env=clean_environment(PYTHONPATH=SITE), output="1\n")


class Exit(Program):
    """Whatever is left when the interpreter ends."""

    def exits(self, code, output=""):
        self.run_ok(BEGIN + code, output=output)

    def test_with_everything_open(self):
        self.exits("s, _ = acl.rt.create_stream(); p, _ = acl.rt.malloc(4096, 0)")

    def test_after_finalize(self):
        self.exits("acl.finalize()\ns, r = acl.rt.create_stream(); print(r != 0)", "True\n")

    def test_from_atexit_and_destructors(self):
        self.exits("""
class Owner:
    def __init__(self):
        self.stream, _ = acl.rt.create_stream()
    def __del__(self):
        print(acl.rt.destroy_stream(self.stream), acl.rt.reset_device(0), acl.finalize())
owner = Owner()
atexit.register(lambda: print('atexit', acl.rt.synchronize_stream(owner.stream)))
""", "atexit 0\n0 0 0\n")

    def test_while_a_callback_runs(self):
        # The main thread ends as soon as the callback has begun; it is waited for.
        self.exits("""
s, _ = acl.rt.create_stream()
begun, ending = threading.Event(), threading.Event()
def callback(_):
    begun.set()
    ending.wait()
    print('done', flush=True)
acl.rt.launch_host_func(s, callback, None)
atexit.register(ending.set)  # behind the module's, so run before it
begun.wait()
""", "done\n")

    def test_while_callbacks_wait_in_the_stream(self):
        self.exits("""
s, _ = acl.rt.create_stream()
begun = threading.Event()
def first(_):
    begun.set()
    time.sleep(0.2)
acl.rt.launch_host_func(s, first, None)
for i in range(100):
    acl.rt.launch_host_func(s, lambda i: i, i)
begun.wait()
""")

    def test_a_callback_that_never_ends_does_not_hang_the_exit(self):
        self.exits("""
s, _ = acl.rt.create_stream()
begun = threading.Event()
def callback(_):
    begun.set()
    threading.Event().wait()
acl.rt.launch_host_func(s, callback, None)
begun.wait()
""")

    def test_with_a_report_thread_that_is_not_stopped(self):
        self.exits("""
def serve(_):
    acl.rt.set_device(0)
    while True:
        acl.rt.process_report(50)
t, r = acl.util.start_thread(serve, [])
s, _ = acl.rt.create_stream()
acl.rt.subscribe_report(t, s)
done = threading.Event()
acl.rt.launch_callback(lambda e: e.set(), done, 1, s)
print(done.wait(600))
""", "True\n")

    def test_by_sys_exit_in_a_thread_and_by_os_exit(self):
        self.exits("threading.Thread(target=lambda: sys.exit(3)).start()")
        self.exits("acl.rt.malloc(4096, 0)\nos._exit(0)")

    def test_ctrl_c_while_a_call_waits(self):
        # Python sees the signal when the call has returned.
        self.exits("""
import signal
s, _ = acl.rt.create_stream()
def callback(_):
    os.kill(os.getpid(), signal.SIGINT)
acl.rt.launch_host_func(s, callback, None)
try:
    acl.rt.synchronize_stream(s)
    time.sleep(10)
except KeyboardInterrupt:
    print('interrupted')
""", "interrupted\n")


class Fork(Program):
    def test_the_child_is_told_and_ends_well(self):
        code = BEGIN + """
s, _ = acl.rt.create_stream()
acl.rt.launch_host_func(s, lambda _: None, None); acl.rt.synchronize_stream(s)
pid = os.fork()
if pid == 0:
    codes = acl.rt.set_device(0), acl.rt.malloc(4096, 0)
    print(codes, 'forked' in acl.get_recent_err_msg(), flush=True)
    sys.exit(0)
print(os.waitpid(pid, 0)[1], acl.rt.malloc(4096, 0)[1])
"""
        self.run_ok(code, output="(507033, (0, 507899)) True\n0 0\n")

    def test_fork_while_a_callback_runs(self):
        code = BEGIN + """
s, _ = acl.rt.create_stream()
begun, go = threading.Event(), threading.Event()
def callback(_):
    begun.set()
    go.wait()
acl.rt.launch_host_func(s, callback, None)
begun.wait()
start = time.monotonic()
pid = os.fork()
if pid == 0:
    sys.exit(0)
print(os.waitpid(pid, 0)[1])
go.set()
print(acl.rt.synchronize_stream(s))
"""
        self.run_ok(code, output="0\n0\n")

    def test_multiprocessing_spawn(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text("""
import acl, multiprocessing
def work(n):
    acl.init(); acl.rt.set_device(0)
    p, r = acl.rt.malloc(n << 20, 0)
    acl.rt.memset(p, n << 20, n, n << 20)
    out = bytes(bytearray(16))
    acl.rt.memcpy(acl.util.bytes_to_ptr(out), 16, p, 16, 2)
    return r, out[0]
if __name__ == '__main__':
    acl.init(); acl.rt.set_device(0)
    p, r = acl.rt.malloc(1 << 20, 0)
    with multiprocessing.get_context('spawn').Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))
""")
            for command in ((), (belay(), "run", "--report", "none", "--")):
                env = clean_environment(BELAY_STATE=folder + "/state")  # one card for all
                env.update({} if command else {"PYTHONPATH": SITE})
                result = subprocess.run([*command, sys.executable, str(program)], env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        timeout=600, check=False)
                self.assertEqual(result.stdout, "[(0, 1), (0, 2), (0, 3)]\n", result.stderr)


if __name__ == "__main__":
    unittest.main()

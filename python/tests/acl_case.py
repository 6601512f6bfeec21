# SPDX-License-Identifier: Apache-2.0
"""acl_case.py - what the tests of the module acl share."""
import os
import pathlib
import subprocess
import sys
import unittest

import acl

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

MIB = 1 << 20
HUGE_FIRST = acl.ACL_MEM_MALLOC_HUGE_FIRST
H2D = acl.ACL_MEMCPY_HOST_TO_DEVICE
D2H = acl.ACL_MEMCPY_DEVICE_TO_HOST
D2D = acl.ACL_MEMCPY_DEVICE_TO_DEVICE


class Case(unittest.TestCase):
    """A test on device 0."""

    def setUp(self):
        self.assertIn(acl.init(), (0, acl.ACL_ERROR_REPEAT_INITIALIZE))
        self.ok(acl.rt.set_device(0))
        self.addCleanup(acl.finalize)
        self.addCleanup(acl.rt.reset_device, 0)

    def ok(self, result):
        """The results of a call without its code, which is 0."""
        code = result[-1] if isinstance(result, tuple) else result
        self.assertEqual(code, 0, acl.get_recent_err_msg())
        if not isinstance(result, tuple):
            return None
        return result[0] if len(result) == 2 else result[:-1]

    def malloc(self, size):
        memory = self.ok(acl.rt.malloc(size, HUGE_FIRST))
        self.addCleanup(acl.rt.free, memory)
        return memory

    def stream(self):
        stream = self.ok(acl.rt.create_stream())
        self.addCleanup(acl.rt.destroy_stream_force, stream)
        return stream

    def put(self, memory, data):
        self.ok(acl.rt.memcpy(memory, len(data), acl.util.bytes_to_ptr(data), len(data), H2D))

    def get(self, memory, size):
        data = bytes(bytearray(size))  # an object of our own, whatever its size
        self.ok(acl.rt.memcpy(acl.util.bytes_to_ptr(data), size, memory, size, D2H))
        return data


def python(code, *command, env=None, timeout=600):
    """Runs a program in a new interpreter, behind `command` when there is one."""
    return subprocess.run([*command, sys.executable, "-c", code], env=env, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def belay():
    """The command of this build."""
    return os.environ["BELAY"]

# SPDX-License-Identifier: Apache-2.0
"""python_program.py work|touch before|after: faulthandler is enabled before or after our library."""
import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import threading

if sys.argv[2] == "before":
    faulthandler.enable()
acl = ctypes.CDLL("libascendcl.so")
acl.aclrtMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
                            ctypes.c_int]
acl.aclrtFree.argtypes = [ctypes.c_void_p]


def must(code):
    if code != 0:
        sys.exit(f"acl error {code}")


def malloc(size):
    block = ctypes.c_void_p()
    must(acl.aclrtMalloc(ctypes.byref(block), ctypes.c_size_t(size), 0))
    return block


def circles(n):
    must(acl.aclrtSetDevice(0))
    for i in range(n):
        block = malloc(4096)
        data = bytes([i % 256]) * 4096
        back = ctypes.create_string_buffer(4096)
        must(acl.aclrtMemcpy(block, 4096, data, 4096, 1))
        must(acl.aclrtMemcpy(back, 4096, block, 4096, 2))
        if back.raw != data:
            sys.exit("wrong bytes")
        must(acl.aclrtFree(block))


def touch(block):
    return ctypes.string_at(block, 16)


must(acl.aclInit(None))
must(acl.aclrtSetDevice(0))
if sys.argv[2] == "after":
    faulthandler.enable()
if sys.argv[1] == "touch":
    touch(malloc(4096))
    sys.exit("not stopped")

ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for _ in range(3):
    threads = [threading.Thread(target=circles, args=(50,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
subprocess.run(["true"], check=True)
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
signal.setitimer(signal.ITIMER_REAL, 0)
must(acl.aclrtResetDevice(0))
must(acl.aclFinalize())
print("done")

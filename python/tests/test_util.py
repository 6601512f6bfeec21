# SPDX-License-Identifier: Apache-2.0
"""acl.util: bytes and arrays as addresses, and back."""
import unittest
import warnings

import acl
import numpy
from acl_case import Case, D2H, H2D


class Util(Case):
    def test_bytes(self):
        data = b"some bytes"
        address = acl.util.bytes_to_ptr(data)
        self.assertEqual(acl.util.ptr_to_bytes(address, len(data)), data)
        self.assertEqual(acl.util.ptr_to_bytes(address + 5, 5), b"bytes")
        self.assertEqual(acl.util.ptr_to_bytes(0, 0), b"")
        large = bytes(range(256)) * 65536
        self.assertEqual(acl.util.ptr_to_bytes(acl.util.bytes_to_ptr(large), len(large)), large)

    def test_numpy_and_back(self):
        array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
        address = acl.util.numpy_to_ptr(array)
        self.assertEqual(address, array.ctypes.data)
        again = acl.util.ptr_to_numpy(address, (3, 4), 11)  # NPY_FLOAT
        self.assertEqual(again.dtype, numpy.float32)
        self.assertTrue((again == array).all())
        again[1, 2] = 77  # the same memory
        self.assertEqual(array[1, 2], 77)

    def test_type_numbers(self):
        data = bytes(64)
        address = acl.util.bytes_to_ptr(data)
        for number in list(range(17)) + [23]:
            array = acl.util.ptr_to_numpy(address, (1,), number)
            self.assertEqual(array.dtype.num, number)
        for number in (-1, 17, 18, 19, 20, 21, 22, 24, 1000):
            with self.assertRaises(ValueError):
                acl.util.ptr_to_numpy(address, (1,), number)

    def test_shapes(self):
        address = acl.util.bytes_to_ptr(bytes(64))
        self.assertEqual(acl.util.ptr_to_numpy(address, (), 1).shape, ())
        self.assertEqual(acl.util.ptr_to_numpy(0, (0, 3), 1).shape, (0, 3))
        for shape in ((-1,), (1 << 62, 1 << 62), (1 << 62,)):
            with self.assertRaises(ValueError):
                acl.util.ptr_to_numpy(address, shape, 1)
        for shape in ([4], 4, None, ("4",), (4.0,)):
            with self.assertRaises(TypeError):
                acl.util.ptr_to_numpy(address, shape, 1)

    def test_contiguous(self):
        array = numpy.arange(16, dtype=numpy.int32).reshape(4, 4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            acl.util.numpy_to_ptr(array)
            self.assertEqual(caught, [])
            acl.util.numpy_to_ptr(array.T)
        self.assertEqual(len(caught), 1)
        address, copy = acl.util.numpy_contiguous_to_ptr(array.T)
        self.assertTrue(copy.flags.c_contiguous)
        self.assertTrue((acl.util.ptr_to_numpy(address, (4, 4), 5) == array.T).all())
        address, same = acl.util.numpy_contiguous_to_ptr(array)
        self.assertIs(same, array)
        self.assertEqual(address, array.ctypes.data)

    def test_what_is_no_array(self):
        for wrong in (b"x", None, [1], 5):
            with self.assertRaises(ValueError):
                acl.util.numpy_to_ptr(wrong)
            with self.assertRaises(ValueError):
                acl.util.numpy_contiguous_to_ptr(wrong)
        for wrong in ("x", None, bytearray(3), 5):
            with self.assertRaises(ValueError):
                acl.util.bytes_to_ptr(wrong)

    def test_memory_that_is_not_there(self):
        for address in (0, 1, 16, 1 << 47, (1 << 64) - 8, 0xdead0000):
            with self.assertRaises(ValueError):
                acl.util.ptr_to_bytes(address, 16)
            with self.assertRaises(ValueError):
                acl.util.ptr_to_numpy(address, (16,), 1)
        data = bytes(64)
        for size in (1 << 40, 1 << 62, (1 << 64) - 1):
            with self.assertRaises(ValueError):
                acl.util.ptr_to_bytes(acl.util.bytes_to_ptr(data), size)

    def test_card_memory_is_not_the_hosts(self):
        memory = self.malloc(4096)
        for call in (lambda: acl.util.ptr_to_bytes(memory, 16),
                     lambda: acl.util.ptr_to_numpy(memory, (16,), 1),
                     lambda: acl.rt.create_binary(memory, 16)):
            with self.assertRaisesRegex(ValueError, "device 0"):
                call()

    def test_numpy_through_the_card(self):
        array = numpy.random.default_rng(1).random(1000)
        memory, out = self.malloc(array.nbytes), numpy.empty_like(array)
        self.ok(acl.rt.memcpy(memory, array.nbytes, acl.util.numpy_to_ptr(array), array.nbytes,
                              H2D))
        self.ok(acl.rt.memcpy(acl.util.numpy_to_ptr(out), out.nbytes, memory, out.nbytes, D2H))
        self.assertTrue((out == array).all())


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Tensor queues from Python: channels, data items, queues, routes, shared buffers."""
import ctypes
import struct
import unittest

import acl
from acl_case import Case

DEPTH = acl.ACL_TDT_QUEUE_DEPTH_UINT32
NAME = acl.ACL_TDT_QUEUE_NAME_PTR


class Channels(Case):
    def item(self, data, dims):
        keep = ctypes.create_string_buffer(data, len(data))
        item = acl.tdt.create_data_item(acl.ACL_TENSOR_DATA_TENSOR, dims, acl.ACL_UINT8,
                                        ctypes.addressof(keep), len(data))
        self.assertNotEqual(item, 0)
        self.addCleanup(acl.tdt.destroy_data_item, item)
        self.addCleanup(lambda: keep)
        return item

    def test_a_tensor_goes_through_a_channel(self):
        channel = acl.tdt.create_channel_with_capacity(0, "python", 2)
        self.assertNotEqual(channel, 0)
        sent, got = acl.tdt.create_dataset(), acl.tdt.create_dataset()
        self.ok(acl.tdt.add_data_item(sent, self.item(b"abcdef", [2, 3])))
        self.assertEqual(acl.tdt.get_dataset_size(sent), 1)
        self.ok(acl.tdt.send_tensor(channel, sent, 0))
        self.assertEqual(acl.tdt.query_channel_size(channel), (1, 0))
        self.ok(acl.tdt.receive_tensor(channel, got, 0))
        item = acl.tdt.get_data_item(got, 0)
        self.assertEqual(acl.tdt.get_dim_num_from_item(item), 2)
        self.assertEqual(acl.tdt.get_dims_from_item(item), ([2, 3], 0))
        self.assertEqual(acl.tdt.get_data_type_from_item(item), acl.ACL_UINT8)
        self.assertEqual(acl.tdt.get_tensor_type_from_item(item), acl.ACL_TENSOR_DATA_TENSOR)
        size = acl.tdt.get_data_size_from_item(item)
        address = acl.tdt.get_data_addr_from_item(item)
        self.assertEqual(acl.util.ptr_to_bytes(address, size), b"abcdef")
        self.assertIsInstance(acl.tdt.get_dataset_name(got), str)
        self.assertNotEqual(acl.tdt.receive_tensor(channel, got, 1), 0)
        self.ok(acl.tdt.send_tensor(channel, sent, 0))
        self.ok(acl.tdt.clean_channel(channel))
        self.assertEqual(acl.tdt.query_channel_size(channel), (0, 0))
        self.ok(acl.tdt.stop_channel(channel))
        self.ok(acl.tdt.destroy_channel(channel))
        self.ok(acl.tdt.destroy_dataset(sent))
        self.ok(acl.tdt.destroy_dataset(got))

    def test_items_that_are_none(self):
        self.assertEqual(acl.tdt.get_dims_from_item(12345)[0], [])
        self.assertNotEqual(acl.tdt.get_dims_from_item(12345)[1], 0)
        self.assertEqual(acl.tdt.get_slice_info_from_item(0)[:2], (0, 0))
        for dims in (None, 5, ["x"], [1 << 63]):
            with self.assertRaises(TypeError):
                acl.tdt.create_data_item(acl.ACL_TENSOR_DATA_TENSOR, dims, acl.ACL_UINT8, 0, 0)
        end = acl.tdt.create_data_item(acl.ACL_TENSOR_DATA_END_OF_SEQUENCE, [], acl.ACL_UINT8, 0, 0)
        self.assertEqual(acl.tdt.get_dims_from_item(end), ([], 0))
        self.ok(acl.tdt.destroy_data_item(end))
        self.assertEqual(acl.tdt.create_data_item(0, [1] * 10000, acl.ACL_UINT8, 0, 0), 0)


class Queues(Case):
    def queue(self, depth=4):
        attr = acl.tdt.create_queue_attr()
        self.ok(acl.tdt.set_queue_attr(attr, DEPTH, depth))
        queue = self.ok(acl.tdt.create_queue(attr))
        self.ok(acl.tdt.destroy_queue_attr(attr))
        return queue

    def send(self, queue, data, beside=b""):
        self.ok(acl.tdt.enqueue_data(queue, acl.util.bytes_to_ptr(data), len(data),
                                     acl.util.bytes_to_ptr(beside) if beside else 0, len(beside),
                                     0, 0))

    def take(self, queue, room=64):
        data = ctypes.create_string_buffer(room)
        size = self.ok(acl.tdt.dequeue_data(queue, ctypes.addressof(data), room, 0, 0, 1000))
        return data.raw[:size]

    def test_attributes(self):
        attr = acl.tdt.create_queue_attr()
        self.assertEqual(acl.tdt.get_queue_attr(attr, DEPTH), (8, 0))
        self.assertEqual(acl.tdt.get_queue_attr(attr, NAME), ("", 0))
        self.ok(acl.tdt.set_queue_attr(attr, NAME, "näme"))
        self.ok(acl.tdt.set_queue_attr(attr, DEPTH, 16))
        self.assertEqual(acl.tdt.get_queue_attr(attr, NAME), ("näme", 0))
        self.assertEqual(acl.tdt.get_queue_attr(attr, DEPTH), (16, 0))
        self.assertNotEqual(acl.tdt.set_queue_attr(attr, NAME, 5), 0)
        self.assertNotEqual(acl.tdt.set_queue_attr(attr, DEPTH, "5"), 0)
        self.assertEqual(acl.tdt.get_queue_attr(attr, 2)[0], 0)
        self.assertNotEqual(acl.tdt.get_queue_attr(attr, 2)[1], 0)
        for wrong in (None, 1.5, b"x", "a\0b", 1 << 32):
            with self.assertRaises(TypeError):
                acl.tdt.set_queue_attr(attr, NAME, wrong)
        with self.assertRaisesRegex(TypeError, "takes 3 arguments"):
            acl.tdt.set_queue_attr(attr, NAME)
        self.ok(acl.tdt.destroy_queue_attr(attr))
        self.assertEqual(acl.tdt.get_queue_attr(attr, NAME)[0], 0)

    def test_messages_keep_their_order(self):
        queue = self.queue(2)
        self.send(queue, b"one")
        self.send(queue, b"two", b"beside")
        data = b"three"
        self.assertEqual(acl.tdt.enqueue_data(queue, acl.util.bytes_to_ptr(data), 5, 0, 0, 0, 0),
                         acl.ACL_ERROR_RT_QUEUE_FULL)
        self.assertEqual(self.take(queue), b"one")
        self.assertEqual(self.take(queue), b"two")
        self.assertEqual(acl.tdt.dequeue(queue, 1)[0], 0)
        self.assertNotEqual(acl.tdt.dequeue(queue, 1)[1], 0)
        self.ok(acl.tdt.destroy_queue(queue))

    def test_buffers(self):
        queue, buffer = self.queue(), self.ok(acl.tdt.alloc_buf(64, acl.ACL_TDT_NORMAL_MEM))
        address, size = self.ok(acl.tdt.get_buf_data(buffer))
        self.assertEqual(size, 64)
        ctypes.memmove(address, b"in place", 8)
        self.ok(acl.tdt.set_buf_data_len(buffer, 8))
        self.assertEqual(acl.tdt.get_buf_data_len(buffer), (8, 0))
        beside = b"beside"
        self.ok(acl.tdt.set_buf_user_data(buffer, acl.util.bytes_to_ptr(beside), 6, 4))
        other = self.ok(acl.tdt.copy_buf_ref(buffer))
        self.ok(acl.tdt.append_buf_chain(buffer, other))
        self.assertEqual(acl.tdt.get_buf_chain_num(buffer), (2, 0))
        self.assertEqual(acl.tdt.get_buf_from_chain(buffer, 1), (other, 0))
        self.ok(acl.tdt.enqueue(queue, buffer, 0))
        got = self.ok(acl.tdt.dequeue(queue, 0))
        self.assertEqual(acl.util.ptr_to_bytes(self.ok(acl.tdt.get_buf_data(got))[0], 8),
                         b"in place")
        room = ctypes.create_string_buffer(6)
        self.ok(acl.tdt.get_buf_user_data(got, ctypes.addressof(room), 6, 4))
        self.assertEqual(room.raw, beside)
        for address in (16, 0xdead0000):
            self.assertNotEqual(acl.tdt.get_buf_user_data(got, address, 6, 0), 0)
            self.assertNotEqual(acl.tdt.set_buf_user_data(got, address, 6, 0), 0)
        self.ok(acl.tdt.free_buf(got))
        self.ok(acl.tdt.destroy_queue(queue))

    def test_routes(self):
        source, target = self.queue(), self.queue()
        route, routes = acl.tdt.create_queue_route(source, target), \
            acl.tdt.create_queue_route_list()
        self.assertEqual(
            [acl.tdt.get_queue_route_param(route, which) for which in range(3)],
            [(source, 0), (target, 0), (0, 0)])
        self.ok(acl.tdt.add_queue_route(routes, route))
        self.assertEqual(acl.tdt.get_queue_route_num(routes), 1)
        self.ok(acl.tdt.bind_queue_routes(routes))
        self.ok(acl.tdt.get_queue_route(routes, 0, route))
        self.assertEqual(acl.tdt.get_queue_route_param(route, acl.ACL_TDT_QUEUE_ROUTE_STATUS_INT32),
                         (acl.ACL_TDT_QUEUE_ROUTE_BIND, 0))
        self.send(source, struct.pack("Q", 7))
        self.assertEqual(self.take(target), struct.pack("Q", 7))
        query, found = acl.tdt.create_queue_route_query_info(), acl.tdt.create_queue_route_list()
        for kind, value in ((acl.ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM,
                             acl.ACL_TDT_QUEUE_ROUTE_QUERY_SRC),
                            (acl.ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32, source)):
            self.ok(acl.tdt.set_queue_route_query_info(query, kind, value))
        self.ok(acl.tdt.query_queue_routes(query, found))
        self.assertEqual(acl.tdt.get_queue_route_num(found), 1)
        self.ok(acl.tdt.get_queue_route(found, 0, route))
        self.assertEqual(acl.tdt.get_queue_route_param(route, 1), (target, 0))
        self.ok(acl.tdt.unbind_queue_routes(routes))
        self.assertEqual(acl.tdt.get_queue_route_param(route, 7)[0], 0)
        self.assertNotEqual(acl.tdt.get_queue_route_param(route, 7)[1], 0)
        self.assertNotEqual(acl.tdt.set_queue_route_query_info(query, 7, 0), 0)
        self.ok(acl.tdt.destroy_queue_route(route))
        self.ok(acl.tdt.destroy_queue_route_list(routes))
        self.ok(acl.tdt.destroy_queue_route_list(found))
        self.ok(acl.tdt.destroy_queue_route_query_info(query))
        self.ok(acl.tdt.destroy_queue(source))
        self.ok(acl.tdt.destroy_queue(target))

    def test_buffers_of_the_runtime(self):
        head, tail = (self.ok(acl.rt.alloc_buf(32)) for _ in range(2))
        address, size = self.ok(acl.rt.get_buf_data(head))
        self.assertEqual(size, 32)
        ctypes.memmove(address, b"bytes", 5)
        self.ok(acl.rt.set_buf_data_len(head, 5))
        self.assertEqual(acl.rt.get_buf_data_len(head), (5, 0))
        data = b"user"
        self.ok(acl.rt.set_buf_user_data(head, acl.util.bytes_to_ptr(data), 4, 0))
        room = ctypes.create_string_buffer(4)
        self.ok(acl.rt.get_buf_user_data(head, ctypes.addressof(room), 4, 0))
        self.assertEqual(room.raw, data)
        self.ok(acl.rt.append_buf_chain(head, tail))
        self.assertEqual(acl.rt.get_buf_chain_num(head), (2, 0))
        self.assertEqual(acl.rt.get_buf_from_chain(head, 1), (tail, 0))
        copy = self.ok(acl.rt.copy_buf_ref(head))
        self.assertEqual(acl.util.ptr_to_bytes(self.ok(acl.rt.get_buf_data(copy))[0], 5), b"bytes")
        self.ok(acl.rt.free_buf(copy))
        self.ok(acl.rt.free_buf(head))


if __name__ == "__main__":
    unittest.main()

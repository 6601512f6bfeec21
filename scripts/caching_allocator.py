#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the classic caching allocator of PyTorch for Ascend reserves for a trace on stdin.

Rules: 32 bytes more, rounded up to 512; up to 1 MiB from segments of 2 MiB, below 10 MiB from
segments of 20 MiB, else from segments of its own in multiples of 2 MiB; best fit; the rest of a
block is kept apart when it is at least 512 bytes (small) or above 1 MiB; neighbours that are
free join; segments are kept. A simulation: one stream, no limit of memory.
"""
import bisect
import sys

KIB, MIB = 1 << 10, 1 << 20


class Pool:
    def __init__(self, small):
        self.small, self.free, self.reserved = small, [], 0  # free: (size, segment, start)
        self.starts, self.ends, self.segments = {}, {}, 0

    def add(self, size, segment, start):
        bisect.insort(self.free, (size, segment, start))
        self.starts[segment, start] = self.ends[segment, start + size] = (size, segment, start)

    def take(self, block):
        self.free.pop(bisect.bisect_left(self.free, block))
        size, segment, start = block
        del self.starts[segment, start], self.ends[segment, start + size]

    def alloc(self, size):
        at = bisect.bisect_left(self.free, (size, 0, 0))
        if at == len(self.free):
            if self.small:
                length = 2 * MIB
            elif size < 10 * MIB:
                length = 20 * MIB
            else:
                length = -(-size // (2 * MIB)) * 2 * MIB
            self.segments += 1
            self.reserved += length
            self.add(length, self.segments, 0)
            at = bisect.bisect_left(self.free, (size, 0, 0))
        length, segment, start = block = self.free[at]
        self.take(block)
        if length - size >= 512 if self.small else length - size > MIB:
            self.add(length - size, segment, start + size)
            length = size
        return length, segment, start

    def give(self, length, segment, start):
        for side in (self.ends.get((segment, start)), self.starts.get((segment, start + length))):
            if side:
                self.take(side)
                length, start = length + side[0], min(start, side[2])
        self.add(length, segment, start)


def main():
    pools, live = {True: Pool(True), False: Pool(False)}, {}
    for line in sys.stdin:
        field = line.rstrip("\n").split("\t")
        if len(field) < 4 or field[1] not in ("a", "f"):
            continue
        if field[1] == "a":
            size = -(-(int(field[3]) + 32) // 512) * 512
            pool = pools[size <= MIB]
            live[field[2]] = pool, pool.alloc(size)
        elif field[2] in live:
            pool, block = live.pop(field[2])
            pool.give(*block)
    reserved = sum(pool.reserved for pool in pools.values())
    print(f"reserved     {reserved} B ({reserved / (1 << 30):.1f} GiB)")


main()

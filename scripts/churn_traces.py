#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""churn_traces.py FOLDER [--seed N] [NAME...] - allocation traces of random sizes and lifetimes, in
the form that `belay replay` and bench/pool_traces read.

The mixes are filled to their live bytes; from then on random blocks make room for new ones. Nothing
repeats, so no policy can learn a step. The shapes are what programs do, at random: caches of
requests that grow, steps of changing length, phases that change sizes, streams that use each
other's blocks. The same traces come out on every machine.
"""
import argparse
import math
import pathlib
import random

HEAD = "time_us\top\tid\tbytes\tstream\ttag\n"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# name: smallest and largest block, by logarithm?, live bytes, allocations, streams, multiples of
MIXES = {
    "1_16M_at_1G": (MIB, 16 * MIB, False, GIB, 20000, 1, 1),
    "1_16M_at_8G": (MIB, 16 * MIB, False, 8 * GIB, 30000, 1, 1),
    "1_16M_4_streams": (MIB, 16 * MIB, False, 8 * GIB, 30000, 4, 1),
    "1_16M_multiples_of_1M": (MIB, 16 * MIB, False, 8 * GIB, 30000, 1, MIB),
    "4_64M_at_16G": (4 * MIB, 64 * MIB, False, 16 * GIB, 20000, 1, 1),
    "16_256M_at_16G": (16 * MIB, 256 * MIB, False, 16 * GIB, 10000, 1, 1),
    "64M_1G_at_32G": (64 * MIB, GIB, False, 32 * GIB, 5000, 1, 1),
    "64K_4M_at_2G": (64 * KIB, 4 * MIB, False, 2 * GIB, 30000, 1, 1),
    "64K_4M_at_8G": (64 * KIB, 4 * MIB, False, 8 * GIB, 30000, 1, 1),
    "64K_64M_log_4_streams": (64 * KIB, 64 * MIB, True, 8 * GIB, 30000, 4, 1),
    "512B_64M_log_at_8G": (512, 64 * MIB, True, 8 * GIB, 40000, 1, 1),
    "512B_16M_log_at_2G": (512, 16 * MIB, True, 2 * GIB, 40000, 1, 1),
    "256K_2M_at_1G": (256 * KIB, 2 * MIB, False, GIB, 30000, 1, 1),
    "1K_1M_at_1G": (KIB, MIB, False, GIB, 30000, 1, 1),
    "512B_512K_log_at_512M": (512, 512 * KIB, True, 512 * MIB, 60000, 1, 1),
    "4K_64K_at_256M": (4 * KIB, 64 * KIB, False, 256 * MIB, 60000, 1, 1),
    "64K_512K_4_streams": (64 * KIB, 512 * KIB, False, GIB, 40000, 4, 1),
    "512K_1M_at_4G": (512 * KIB, MIB, False, 4 * GIB, 40000, 1, 1),
}


class Trace:
    """What a program does, line by line."""

    def __init__(self, source):
        self.source = source
        self.lines, self.blocks, self.due = [], [], []
        self.live = self.names = 0

    def say(self, op, name, size, stream):
        self.lines.append(f"{len(self.lines)}\t{op}\t{name}\t{size}\t{stream}\t-\n")
        while self.due and self.due[0][0] <= len(self.lines):
            self.say("d", self.due.pop(0)[1], 0, 0)

    def alloc(self, size, stream=0):
        self.names += 1
        block = [self.names, max(1, int(size)), stream, False]
        self.live += block[1]
        self.say("a", *block[:3])
        return block

    def free(self, block):
        self.live -= block[1]
        self.say("f", block[0], 0, block[2])
        if block[3]:  # its use ends some time later
            self.due.append((len(self.lines) + self.source.randrange(10, 200), block[0]))
            self.due.sort()

    def use(self, block, stream):
        block[3] = True
        self.say("u", block[0], 0, stream)

    def hold(self, size, stream=0):
        """A block that lives until drop() meets it."""
        self.blocks.append(self.alloc(size, stream))

    def drop(self):
        at = self.source.randrange(len(self.blocks))
        self.blocks[at], self.blocks[-1] = self.blocks[-1], self.blocks[at]
        self.free(self.blocks.pop())

    def drop_to(self, live):
        while self.blocks and self.live > live:
            self.drop()


def draw(source, least, most, by_log, unit=1):
    if by_log:
        size = least * math.exp(source.random() * math.log(most / least))
    else:
        size = least + source.random() * (most - least)
    return max(unit, int(size) // unit * unit)


def churn(trace, sizes, target, count, streams=1):
    for _ in range(count):
        size = sizes()
        trace.drop_to(target - size)
        trace.hold(size, trace.source.randrange(streams))


def mix(trace, least, most, by_log, target, count, streams, unit):
    churn(trace, lambda: draw(trace.source, least, most, by_log, unit), target, count, streams)


def bimodal(trace, small, large, share, target, count):
    """`share` of all blocks are large."""

    def sizes():
        least, most = large if trace.source.random() < share else small
        return draw(trace.source, least, most, False)

    churn(trace, sizes, target, count)


RANGES = [(512, 64 * KIB), (64 * KIB, 512 * KIB), (256 * KIB, 4 * MIB), (MIB, 16 * MIB),
          (16 * MIB, 128 * MIB)]


def phases(trace, target, order, turns=3):
    """Sizes change; old blocks go one by one, until all were replaced `turns` times."""
    for which in order:
        least, most = RANGES[which]
        count = int(turns * target / ((least + most) / 2))
        churn(trace, lambda: draw(trace.source, least, most, False), target, min(count, 20000))


def refills(trace, target, rounds, left=0.0):
    """All blocks but some go, then others of other sizes come."""
    for i in range(rounds):
        least, most = RANGES[1 + (i * 3) % 4]
        while trace.live < target - most:
            trace.hold(draw(trace.source, least, most, True))
        trace.source.shuffle(trace.blocks)
        trace.drop_to(target * left)


def waves(trace, least, most, target, rounds):
    """What lives goes up and down, by random blocks."""
    for i in range(rounds):
        high = target * (0.7 + 0.3 * trace.source.random()) if i else target
        while trace.live < high - most:
            trace.hold(draw(trace.source, least, most, True))
            if trace.source.random() < 0.3:
                trace.drop()
        trace.drop_to(high * (0.2 + 0.5 * trace.source.random()))


def growing_cache(trace, layers, per_token, chunk, requests, steps):
    """Requests of random lengths; each layer's keys and values are a block that is replaced by a
    longer one whenever a chunk of tokens is full. Beside them, what a step needs for a moment."""
    active = []
    for _ in range(steps):
        while len(active) < requests:
            length = draw(trace.source, 64, 2048, True)
            ends = length + draw(trace.source, 16, 1024, True)
            room = -(-length // chunk) * chunk
            active.append([length, ends, room,
                           [trace.alloc(room * per_token) for _ in range(2 * layers)]])
        moment = [trace.alloc(len(active) * per_token * draw(trace.source, 1, 64, True))
                  for _ in range(8)]
        for request in active:
            request[0] += 1
            if request[0] > request[2]:
                request[2] += chunk
                for i, old in enumerate(request[3]):
                    request[3][i] = trace.alloc(request[2] * per_token)
                    trace.free(old)
        for block in moment:
            trace.free(block)
        for request in [r for r in active if r[0] >= r[1]]:
            for block in request[3]:
                trace.free(block)
            active.remove(request)


def pages(trace, page, requests, steps, adapters):
    """Pages of one size for tokens of requests, and adapters that come and go."""
    active, loaded = [], []
    for _ in range(steps):
        if len(active) < requests:
            active.append([trace.alloc(page) for _ in range(trace.source.randrange(4, 64))])
        for request in active:
            if trace.source.random() < 0.3:
                request.append(trace.alloc(page))
        if trace.source.random() < 0.05:
            loaded.append([trace.alloc(draw(trace.source, 256 * KIB, 24 * MIB, True))
                           for _ in range(24)])
            if len(loaded) > adapters:
                for block in loaded.pop(trace.source.randrange(len(loaded))):
                    trace.free(block)
        if trace.source.random() < 0.2 and active:
            for block in active.pop(trace.source.randrange(len(active))):
                trace.free(block)


def training(trace, layers, steps, weights):
    """Steps of random length: what a layer leaves for the way back is freed in the reverse order."""
    for _ in range(weights):
        trace.alloc(draw(trace.source, 4 * KIB, 32 * MIB, True))
    for _ in range(steps):
        tokens = draw(trace.source, 128, 4096, True)
        kept = []
        for _ in range(layers):
            moment = [trace.alloc(tokens * draw(trace.source, 64, 16384, True)) for _ in range(4)]
            kept.append([trace.alloc(tokens * 1024 * k) for k in (1, 2, 2, 4)])
            kept[-1].append(trace.alloc(tokens * 32))
            for block in moment:
                trace.free(block)
        while kept:
            gradients = [trace.alloc(tokens * 1024 * k) for k in (4, 1, 2)]
            for block in kept.pop() + gradients:
                trace.free(block)


def two_lives(trace, least, most, target, count):
    """Most blocks die at once, others late, with sizes alike."""
    young = []
    for _ in range(count):
        size = draw(trace.source, least, most, True)
        if trace.source.random() < 0.85:
            young.append(trace.alloc(size))
            if len(young) > 24:
                trace.free(young.pop(trace.source.randrange(8)))
        else:
            trace.drop_to(target - size)
            trace.hold(size)


def crossing(trace, least, most, target, count, streams, share):
    """Blocks of several streams, `share` of them used by another one, too."""
    for _ in range(count):
        size = draw(trace.source, least, most, True)
        trace.drop_to(target - size)
        stream = trace.source.randrange(streams)
        trace.hold(size, stream)
        if trace.source.random() < share:
            trace.use(trace.blocks[-1], (stream + 1 + trace.source.randrange(streams - 1)) % streams)


def moving(trace, least, most, target, count, streams):
    """One stream after the other does most of the work."""
    for i in range(count):
        size = draw(trace.source, least, most, True)
        trace.drop_to(target - size)
        busy = i * 3 * streams // count % streams
        trace.hold(size, busy if trace.source.random() < 0.9 else trace.source.randrange(streams))


SHAPES = {
    "bimodal_4_64K_and_4_32M": (bimodal, (4 * KIB, 64 * KIB), (4 * MIB, 32 * MIB), 0.1, 4 * GIB,
                                40000),
    "bimodal_300_700K_and_5_9M": (bimodal, (300 * KIB, 700 * KIB), (5 * MIB, 9 * MIB), 0.1,
                                  2 * GIB, 40000),
    "bimodal_1K_and_3M": (bimodal, (512, 2 * KIB), (3 * MIB, 3 * MIB + 8 * KIB), 0.05, GIB, 60000),
    "phases_up": (phases, 2 * GIB, (1, 2, 3, 4)),
    "phases_down": (phases, 2 * GIB, (4, 3, 2, 1)),
    "phases_mixed": (phases, GIB, (2, 0, 4, 1, 3, 2)),
    "refill": (refills, 2 * GIB, 8),
    "refill_5_of_100_left": (refills, 2 * GIB, 8, 0.05),
    "refill_half_left": (refills, 2 * GIB, 12, 0.5),
    "waves_64K_16M": (waves, 64 * KIB, 16 * MIB, 2 * GIB, 30),
    "waves_4K_2M": (waves, 4 * KIB, 2 * MIB, 512 * MIB, 30),
    "growing_cache_7b": (growing_cache, 32, 8 * KIB, 64, 16, 1500),
    "growing_cache_small": (growing_cache, 12, 1536, 16, 24, 800),
    "pages_2M": (pages, 2 * MIB, 24, 2500, 6),
    "pages_768K": (pages, 768 * KIB, 32, 2500, 6),
    "training_random_steps": (training, 24, 60, 200),
    "two_lives_16K_8M": (two_lives, 16 * KIB, 8 * MIB, 2 * GIB, 60000),
    "two_lives_1K_512K": (two_lives, KIB, 512 * KIB, 512 * MIB, 80000),
    "crossing_2_streams": (crossing, 64 * KIB, 32 * MIB, 4 * GIB, 30000, 2, 0.3),
    "crossing_4_streams": (crossing, 4 * KIB, 8 * MIB, 2 * GIB, 40000, 4, 0.3),
    "moving_4_streams": (moving, 16 * KIB, 16 * MIB, 2 * GIB, 40000, 4),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    makers = {name: (mix, *mixed) for name, mixed in MIXES.items()} | SHAPES
    for name in args.names or makers:
        trace = Trace(random.Random(args.seed))
        maker, *how = makers[name]
        maker(trace, *how)
        (args.folder / f"{name}.tsv").write_text(HEAD + "".join(trace.lines), encoding="utf-8")


if __name__ == "__main__":
    main()

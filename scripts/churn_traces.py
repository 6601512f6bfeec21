#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""churn_traces.py FOLDER - allocation traces of random sizes and lifetimes, in the form that
`belay replay` and bench/pool_traces read.

Each mix is filled to its live bytes; from then on random blocks make room for new ones. Nothing
repeats, so no policy can learn a step. The same traces come out on every machine.
"""
import argparse
import math
import pathlib
import random

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
}


def draw(source, least, most, by_log, unit):
    if by_log:
        size = least * math.exp(source.random() * math.log(most / least))
    else:
        size = least + source.random() * (most - least)
    return max(unit, int(size) // unit * unit)


def write(path, mix):
    least, most, by_log, target, count, streams, unit = mix
    source = random.Random(1)
    live, blocks, lines = 0, [], []
    for name in range(1, count + 1):
        size = draw(source, least, most, by_log, unit)
        while blocks and live + size > target:
            at = source.randrange(len(blocks))
            blocks[at], blocks[-1] = blocks[-1], blocks[at]
            old = blocks.pop()
            live -= old[1]
            lines.append(f"{len(lines)}\tf\t{old[0]}\t{old[1]}\t{old[2]}\n")
        block = (name, size, source.randrange(streams))
        blocks.append(block)
        live += size
        lines.append(f"{len(lines)}\ta\t{block[0]}\t{block[1]}\t{block[2]}\n")
    path.write_text("".join(lines), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, mix in MIXES.items():
        write(folder / f"{name}.tsv", mix)


if __name__ == "__main__":
    main()

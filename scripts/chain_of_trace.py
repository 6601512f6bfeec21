#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chain of layers in one training step of a recorded trace, as CSV for `belay checkpoint`.

usage: zstdcat TRACE.tsv.zst | chain_of_trace.py START LENGTH TOKENS HIDDEN SEQUENCE

START and LENGTH are those of `belay plan --step --json`. What is live at the peak and was born in
the step is what forward saves. Its longest repeat of sizes and tags are the layers; what is saved
before them is the first stage, what is saved behind them the last.

Memory is measured, in KiB rounded up. `saved` counts the output of a layer, which the trace drops
sooner. `fwd_tmp` of a layer is all that its forward holds, since a forward that saves nothing was
not recorded; of the last stage, which is always saved, what comes on top. `bwd_tmp` has the
gradients of weights that have come up by then. Times are not measured: FLOPs / 150e12 + bytes /
1.5e12 for a layer of a transformer, backward twice forward.
"""
import sys

UNIT = 1024


class Block:
    def __init__(self, at, size, tag):
        self.born, self.dead, self.size, self.tag = at, 1 << 62, size, tag


def read(lines):
    """Blocks in order of birth, and the number of events, counted as `belay plan` counts."""
    blocks, now = {}, 0
    for line in lines:
        field = line.rstrip("\n").split("\t")
        if len(field) < 6 or field[1] not in ("a", "f", "d"):
            continue
        if field[1] == "a":
            blocks[field[2]] = Block(now, int(field[3]), field[5])
        else:
            blocks[field[2]].dead = now
        now += 1
    return list(blocks.values()), now


def live_curve(blocks, end):
    change = [0] * (end + 1)
    for b in blocks:
        change[b.born] += b.size
        if b.dead <= end:
            change[b.dead] -= b.size
    live = 0
    for at, step in enumerate(change):
        live += step
        change[at] = live
    return change


def longest_repeat(saved):
    """Start, period and number of the layers."""
    key = [(b.size, b.tag) for b in saved]
    best = (0, 0, 0)
    for period in range(4, len(key) // 2 + 1):
        run = 0
        for x in range(len(key) - period):
            run = run + 1 if key[x] == key[x + period] else 0
            times = run // period + 1
            if times > 1 and (times - 1) * period > best[1] * (best[2] - 1):
                best = (x + 1 - run, period, times)
    return best


def units(size):
    return -(-size // UNIT)


def main():
    start, length, tokens, hidden, sequence = (int(a) for a in sys.argv[1:6])
    end = start + length
    blocks, now = read(sys.stdin)
    live = live_curve(blocks, now)
    peak = max(range(start, end), key=lambda at: live[at])
    saved = [b for b in blocks if start <= b.born <= peak < b.dead]
    first, period, times = longest_repeat(saved)
    cuts = [0] + [first + k * period for k in range(times + 1)] + [len(saved)]
    stages = [saved[a:b] for a, b in zip(cuts, cuts[1:])]
    begins = [s[0].born for s in stages] + [peak + 1]
    flops = 24 * tokens * hidden * hidden + 4 * tokens * sequence * hidden
    print(f"# unit_bytes={UNIT} input_units=1")
    print(f"# {live[start - 1]} bytes are live when the step begins")
    print("stage,name,fwd_us,bwd_us,out,saved,grad,fwd_tmp,bwd_tmp")
    kept, floor = live[start - 1], []
    for x, stage in enumerate(stages):
        floor.append(kept)
        kept += sum(b.size for b in stage)
    below = 1
    for x, stage in enumerate(stages):
        last = x + 1 == len(stages)
        own = sum(b.size for b in stage)
        out = 0 if last else max(0, live[begins[x + 1] - 1] - floor[x + 1])
        forward = max(live[at] for at in range(begins[x], begins[x + 1])) - floor[x] - out
        starts = peak if last else max(b.dead for b in stages[x + 1])
        backward = max(live[at] for at in range(starts, max(b.dead for b in stage)))
        backward -= floor[x] + own + out + below
        layers = [] if x == 0 or last else [flops / 150e12]
        time = round((sum(layers) + own / 1.5e12) * 1e6)
        name = "first" if x == 0 else "last" if last else f"layer{x - 1}"
        print(x + 1, name, time, 2 * time, units(out), units(own + out), units(out),
              units(forward - own if last else forward), units(max(0, backward)), sep=",")
        below = out


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training run of a BERT-large-like model, as an allocation trace or as a chain.

gen_bert.py trace   TSV for `belay plan`: weights and optimizer state, then steps
gen_bert.py chain   CSV for `belay checkpoint`: one stage a layer

Sizes follow from shapes: b sequences of s tokens, hidden size h, half precision; what a layer
saves is b s h (34 + 5 a s / h) bytes for a heads. Times are FLOPs / 150e12 + bytes / 1.5e12 in
microseconds, a stated model; backward is twice forward.
"""
import sys

L, H, HEADS, S, B, VOCAB, STEPS = 24, 1024, 16, 512, 32, 30522, 3
UNIT = B * S * H  # bytes of a tensor of one byte an element
SCORES = HEADS * S // H  # b a s s in units
# What a layer saves besides its output of 2, in the order in which forward makes it.
SAVED = [("norm1", 2), ("qkv", 6), ("softmax", 2 * SCORES), ("dropmask", SCORES),
         ("attn", 2 * SCORES), ("context", 2), ("mask1", 1), ("residual", 2), ("norm2", 2),
         ("up", 8), ("gelu", 8), ("mask2", 1)]
FORWARD_TEMP = [("proj", 2), ("down", 2)]
BACKWARD_TEMP = [("dup", 8), ("dattn", 2 * SCORES), ("dqkv", 6)]


def layer_us():
    flops = 24 * B * S * H * H + 4 * B * S * S * H
    moved = UNIT * (2 + sum(n for _, n in SAVED))
    return round(flops / 150e12 * 1e6 + moved / 1.5e12 * 1e6)


def chain():
    out = 2
    saved = out + sum(n for _, n in SAVED)
    temp = max(n for _, n in BACKWARD_TEMP)
    forward = layer_us()
    print(f"# unit_bytes={UNIT} input_units=1")
    print("stage,name,fwd_us,bwd_us,out,saved,grad,fwd_tmp,bwd_tmp")
    print(f"1,embed,67,134,{out},{out + 1},{out},0,0")
    for i in range(L):
        print(f"{i + 2},L{i},{forward},{2 * forward},{out},{saved},{out},2,{temp}")
    logits = 2 * VOCAB // H
    print(f"{L + 2},head,{2 * forward},{4 * forward},0,{2 * logits},0,0,{logits}")


class Trace:
    def __init__(self):
        self.next, self.time, self.size = 1, 0, {}
        print("# trace: bert_large_like")
        print("# kind: made from shapes by scripts/gen_bert.py; times are event numbers")
        print("time_us\top\tid\tbytes\tstream\ttag")

    def alloc(self, tag, size):
        block, self.next = self.next, self.next + 1
        print(f"{self.time}\ta\t{block}\t{size}\t0\t{tag}")
        self.time += 1
        return block

    def free(self, *blocks):
        for block in blocks:
            print(f"{self.time}\tf\t{block}\t0\t0\t-")
            self.time += 1


def forward_layer(t):
    held = []
    for k, (tag, units) in enumerate(SAVED):
        held.append(t.alloc(tag, units * UNIT))
        if k in (5, 10):
            t.free(t.alloc(FORWARD_TEMP[k == 10][0], 2 * UNIT))
    return held, t.alloc("out", 2 * UNIT)


def backward_layer(t, held, grad, weights):
    last = []
    for tag, units in BACKWARD_TEMP:
        temp = t.alloc(tag, units * UNIT)
        t.free(*last)
        last = [temp]
        for _ in range(len(held) // 3 + 1):
            if held:
                t.free(held.pop())
    weights.append(t.alloc("dweight", 2 * 12 * H * H))
    below = t.alloc("grad", 2 * UNIT)
    t.free(*last, grad)
    t.free(*held)
    return below


def step(t):
    outs, held = [t.alloc("embed", 2 * UNIT)], [[]]
    for _ in range(L):
        saved, out = forward_layer(t)
        held.append(saved)
        outs.append(out)
    logits = 2 * VOCAB * UNIT // H
    head = [t.alloc("logits", logits), t.alloc("logprob", logits)]
    dlogits = t.alloc("dlogits", logits)
    t.free(*head)
    weights, grad = [], t.alloc("grad", 2 * UNIT)
    t.free(dlogits)
    for i in range(L, 0, -1):
        t.free(outs[i])
        grad = backward_layer(t, held[i], grad, weights)
    t.free(outs[0], grad)
    for block in weights:  # the optimizer, one layer after another
        update = t.alloc("update", 4 * 12 * H * H)
        t.free(update)
        t.free(block)


def trace():
    t = Trace()
    for _ in range(L):
        t.alloc("weight", 2 * 12 * H * H)
        t.alloc("master", 4 * 12 * H * H)
        t.alloc("moment1", 4 * 12 * H * H)
        t.alloc("moment2", 4 * 12 * H * H)
    for i in range(STEPS):
        print(f"{t.time}\te\t0\t0\t0\tstep{i}")
        step(t)


if __name__ == "__main__":
    {"trace": trace, "chain": chain}[sys.argv[1] if len(sys.argv) > 1 else "trace"]()

"""example.py - a training loop under perfkit: regions as blocks, as a decorator and as a pair; a thread that loads.

    python3 example.py
"""

import queue
import threading
import time

import pk

STEPS = 50

load = pk.region("load", pk.DATA)
wait = pk.region("wait for batch", pk.WAIT)
backward = pk.region("backward", pk.COMPUTE)
row = pk.region("row", pk.COMPUTE)
loss = pk.counter("loss")


@pk.region("forward", pk.COMPUTE)
def forward(batch):
    begin, end = row.begin, row.end  # a pair, for the innermost loop
    total = 0.0
    for value in batch:
        begin()
        total += value * value
        end()
    return total


def loader(batches):
    pk.thread_name("loader")
    for number in range(STEPS):
        with load:
            time.sleep(0.001)
            batches.put([number] * 32)


def train():
    batches = queue.Queue(maxsize=4)
    threading.Thread(target=loader, args=(batches,)).start()
    for _ in range(STEPS):
        with wait:
            batch = batches.get()
        value = forward(batch)
        with backward:
            backward.add(flops=2 * len(batch))
            time.sleep(0.001)
        loss.set(value)
        pk.step(len(batch))


with pk.session(trace_path="example.json", report_path="-"):
    train()
    stats = backward.stats()
    print(f"backward: {stats.count} calls, p99 {stats.quantile(0.99) / 1e6:.2f} ms")

assert pk.counts().unbalanced == 0

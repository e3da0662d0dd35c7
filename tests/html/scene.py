"""scene.py - the reports of runs that never were, for the page to show: everything that a report may hold, as much of
it as one of 100,000 steps has, and names that try to be markup."""

import collections
import json
import math
import random

MS = 1_000_000
SHARES = ("other", "compute", "data", "comm", "io", "wait", "untracked")
HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=1'>&lt;\u2028\u2029\"'`${hurt}{{data}}"


def dist(values):
    order, n = sorted(values), len(values)
    if not n:
        return {"count": 0}
    mean = sum(order) / n
    rank = {f"p{q}": order[min(n - 1, math.ceil(q / 100 * n) - 1)] for q in (50, 90, 95, 99)}
    return {"count": n, "sum": sum(order), "min": order[0], "max": order[-1], "mean": mean,
            "stddev": math.sqrt(sum((v - mean) ** 2 for v in order) / n), **rank}


def histogram(values):
    """16 buckets per octave."""
    counts = collections.Counter(math.floor(16 * (e + 2 * m - 2)) for m, e in map(math.frexp, values))

    def edge(i):
        return math.ldexp(1 + i % 16 / 16, i // 16)
    return [[round(edge(i)), round(edge(i + 1)), n] for i, n in sorted(counts.items())]


def durations(rng, count, base):
    """A slow start, jitter, a slow stretch, and now and then a checkpoint."""
    out = []
    for i in range(count):
        ns = base * (1 + 0.06 * rng.random() ** 2) * (1.12 if 0.55 < i / count < 0.62 else 1)
        if i < 4:
            ns *= 12 / (i + 1)
        elif i % max(50, count // 9) == 17:
            ns *= 1.7 + rng.random()
        out.append(int(ns))
    return out


def kinds_of(rng, ns, slow):
    parts = {"compute": 0.58, "data": 0.13 + 0.05 * rng.random(), "comm": 0.14, "wait": 0.02, "other": 0.01, "io": 0}
    kinds = {kind: int(share * ns / (1.8 if slow else 1)) for kind, share in parts.items()}
    if slow:
        kinds["io"] = int(0.4 * ns)
    kinds["untracked"] = ns - sum(kinds.values())
    return {kind: kinds[kind] for kind in SHARES}


def stride_of(count, most):
    """So many steps share a row, a power of two."""
    stride = 1
    while count > most * stride:
        stride *= 2
    return stride


def rows_of(rng, took):
    """The series: 4096 rows at most."""
    stride, now, rows = stride_of(len(took), 4096), 250 * MS, []
    base = sorted(took)[len(took) // 2]
    for i in range(0, len(took), stride):
        part = sorted(took[i:i + stride])
        slow = stride == 1 and i > 4 and part[0] > 1.5 * base
        rows.append({"index": i, "start": now, "steps": len(part), "duration": sum(part), "longest": part[-1],
                     "items": 256 * len(part), "kinds": kinds_of(rng, sum(part), slow), "shortest": part[0],
                     "median": part[len(part) // 2]})
        now += sum(part)
    return rows


def slow_step(rng, index, ns):
    kinds = kinds_of(rng, ns, True)
    return {"index": index, "start": index, "duration": ns, "items": 256, "kinds": kinds,
            "parts": [{"name": "checkpoint", "kind": "io", "self": kinds["io"], "usual": 0},
                      {"name": HOSTILE, "kind": "data", "self": 9 * MS, "usual": 7 * MS}]}


def steps_of(rng, count, base):
    took, warmup = durations(rng, count, base), min(3, count - 1)
    rows, steady = rows_of(rng, took), took[warmup:]
    slowest = sorted(range(warmup, count), key=lambda i: -took[i])[:10]
    return took, {
        "count": count, "warmup": warmup, "all": dist(took), "steady": dist(steady), "warm": dist(took[:warmup]),
        "items": 256 * len(steady), "items_per_second": 256 * len(steady) / (sum(steady) / 1e9),
        "kinds": {kind: sum(row["kinds"][kind] for row in rows) for kind in SHARES}, "broken_down": len(steady),
        "slowest": [slow_step(rng, i, took[i]) for i in slowest], "series": rows, "histogram": histogram(steady)}


def region(rng, name, kind, usual, calls, share=0.0, **more):
    values = [usual * math.exp(rng.gauss(0, 0.16)) * (4 if rng.random() < 0.02 else 1) for _ in range(calls)]
    return {"name": name, "kind": kind, "time": dist(values), "self": int(sum(values)), "step_share": share,
            "step_self": dist(values), "histogram": histogram(values), **more}


def gpu(rng, device, took, measured):
    stride, out = stride_of(len(took), 512), []
    for i in range(0, len(took), stride):
        part = took[i:i + stride]
        step = sum(part)
        busy = int(step * (0.78 + 0.05 * rng.random()))
        idle = step - busy
        out.append({"index": i, "steps": len(part), "step": step, "busy": busy, "gaps": 40 * len(part), "longest_gap": 3 * MS,
                    "copy_alone": busy // 20 if measured else 0, "sync_gaps": idle // 2 if measured else 0,
                    "launch_gaps": idle // 4 if measured else 0, "kernels": 300 * len(part) if measured else 0, "comm_hidden": 0,
                    "comm_exposed": step // 20 if measured else 0})
    shares = {"step": 1, "busy": 0.8, "idle": 0.2}
    if measured:
        shares |= {"sync_gaps": 0.1, "launch_gaps": 0.05, "comm": 0.14, "comm_hidden": 0.09, "comm_exposed": 0.05}
    fixed = {"gaps": 40, "longest_gap": 3 * MS} | ({"kernels": 300, "memory": 6.1e10} if measured else {})
    sample = took[:500]
    return {"device": device, "measured": measured, "streams": 4, "series": out,
            "per_step": {key: dist([share * ns for ns in sample]) for key, share in shares.items()}
                        | {key: dist([value] * len(sample)) for key, value in fixed.items()}}


def collectives(rng):
    rows = []
    for op, calls in (("all_reduce", 400), ("all_gather", 120), ("barrier", 9)):
        for power in range(10, 29, 2) if op != "barrier" else (0,):
            size = 2 ** power if power else 0
            took = [20_000 + 1.5 * size / 180 * (1 + 0.1 * rng.random()) for _ in range(calls)]
            rate = [(1.75 if op == "all_reduce" else 0.9) * size * 1.3 / ns for ns in took]
            rows.append({"communicator": 0, "operation": op, "size": size, "bytes": int(size * 1.3) * calls,
                         "exposed": int(sum(took) / 4), "time": dist(took), **({"algbw": dist(rate), "busbw": dist(rate)} if size else {})})
    return {"unmeasured": 0, "communicators": [{"library": "nccl", "name": "world", "id": "7f", "rank": 3, "size": 8, "calls": 999}],
            "collectives": rows, "regions": [],
            "slowest": [{"region": HOSTILE, "communicator": 0, "operation": "all_reduce", "bytes": 2 ** 28, "sequence": 41 + i,
                         "in_step": True, "step": 7 + i, "start": 5 * MS, "duration": 9 * MS, "exposed": 3 * MS} for i in range(3)]}


def counter(rng, name, unit, low, high, wall, parts=256, samples=4):
    points = []
    for i in range(parts):
        middle = low + (high - low) * (0.5 + 0.35 * math.sin(i / 17) + 0.1 * rng.random())
        spread = (high - low) * 0.04 * (samples > 1)
        points.append([int(wall * i / parts), samples, middle - spread, middle, middle + spread])
    return {"name": name, "unit": unit, "value": dist([p[3] for p in points]) | {"min": min(p[2] for p in points), "max": max(p[4] for p in points)},
            "last": points[-1][3], "series": points}


def roofed(name, share, threads, intensity, flops):
    return {"region": name, "share": share, "threads": threads, "all_processors": threads == 64, "intensity": intensity,
            "bytes_per_second": flops / intensity if intensity else 0, "flops_per_second": flops, "of_double": 0.83, "of_single": 0.41,
            "memory_bound_double": intensity < 2.4, "memory_bound_single": intensity < 4.9}


GOODPUT = {"productive": 0.8, "recomputed": 0.04, "data_wait": 0.05, "startup": 0.03, "compilation": 0.01, "checkpoint": 0.04, "restore": 0,
           "evaluation": 0.02, "hang": 0, "unfinished": 0, "other": 0.01}


def energy(counter, kind, joules, steps, **more):
    return {"counter": counter, "step_kind": kind, "joules": joules, "watts": 400.5, "per_step": joules / steps, "per_item": joules / steps / 256,
            "error": joules / 50, "refused": False, "time": 10 ** 9, "steps": steps, "items": 256 * steps, "period": 10 ** 8, "resets": 0, **more}


EVENTS = ("instructions", "cycles", "cache_misses", "branch_misses", "ipc", "cache_misses_per_1000", "branch_misses_per_1000", "processor_time",
          "page_faults", "context_switches", "migrations", "slots", "retiring", "bad_speculation", "frontend_bound", "backend_bound")


def events_row(region, calls, sampled, **figures):
    """figures: each (value, error); what is not there is not known."""
    row = {"region": region, "calls": calls, "sampled": sampled, "missed": 0, "time": calls * 1000}
    for key in EVENTS:
        row[key], row[f"{key}_error"] = figures.get(key, (-1, -1))
    return row


def events(faster):
    """What was counted of each call; all calls of `once` were sampled."""
    return {"asked": 1, "why_not_hardware": "not counted: branch misses", "why_not_software": "", "why_not_topdown": "", "threads": 2, "threads_without": 1,
            "why_threads": HOSTILE, "threads_lost": 0, "calls_beyond": 0, "bound": 0.01, "spent": 3 * MS, "rows": [
                events_row("backward", 2000, 400, ipc=(2.5 * faster, 0.05), cache_misses_per_1000=(4.2, 0.42), instructions=(5e6, 1e5),
                           cycles=(2e6, 5e4), processor_time=(8e6, 8e4), slots=(12e6, 3e5), retiring=(0.4 * faster, 0.02), bad_speculation=(0.05, 0.01),
                           frontend_bound=(0.15, 0), backend_bound=(0.8 - 0.4 * faster, -1)),
                events_row(HOSTILE, 900, 90, ipc=(1.1, 0.2), cache_misses_per_1000=(10, -1)),
                events_row("once", 1, 1, ipc=(0.5, 0), instructions=(1000, 0), page_faults=(3, 0))]}


def used(name, **more):
    return {"name": name, "allocations": 1000, "bytes": 9 * 10 ** 9, "frees": 900, "freed": 8 * 10 ** 9, "live": 10 ** 9, "peak": 2 * 10 ** 9,
            "at_peak": 10 ** 9, "steady": 2, **more}


def gpu_memory():
    return {"asked": 1, "why_not": "", "operations": 2000, "places": [
        {"place": "gpu0", "total": 8 * 10 ** 10, "allocations": 1000, "bytes": 10 ** 11, "live": 5 * 10 ** 10, "peak": 6 * 10 ** 10, "peak_ns": 10 ** 9,
         "most_held": 6.5 * 10 ** 10, "most_reserved": 10 ** 10, "used_then": 6 * 10 ** 9, "unused": 0.4, "growth": {"steps": 400, "per_step": 2 * 10 ** 6, "z": 9},
         "regions": [used("backward", growth={"steps": 400, "per_step": 2 * 10 ** 6, "z": 9}), used(HOSTILE)],
         "pools": [{"pool": 0, "gone": False, "reserved": 8 * 10 ** 9, "used": 10 ** 9, "most_reserved": 8 * 10 ** 9, "used_then": 2 * 10 ** 9, "unused": 0.75},
                   {"pool": 1, "gone": True, "reserved": 0, "used": 0, "most_reserved": 2 * 10 ** 9, "used_then": 2 * 10 ** 9, "unused": 0}]}]}


def io_steps(count):
    """One step in a hundred writes 40 GB; ten share readings."""
    def figure(p50, p99, most, step):
        each = {"count": count, "sum": p50 * count, "min": 0, "max": most, "mean": p50, "stddev": 1, "p50": p50, "p90": p50, "p95": p50, "p99": p99}
        return {"each": each, "most_step": step, "most_steps": 1}

    return {"steps": count, "readings": count - count // 120, "alone": count - count // 60, "device": count // 100, "read": figure(5e9, 6e9, 6.5e9, 17),
            "written": figure(0, 3.9e10, 4e10, 431), "device_read": figure(0, 0, 0, 0), "device_written": figure(0, 3.9e10, 4e10, 431),
            "operations": figure(1600, 9000, 9100, 431)}


def costs(wall, count):
    """What it cost beside time."""
    return {
        "io": {"asked": 1, "why_not": "", "observed": wall, "read_chars": 3 * 10 ** 12, "write_chars": 4 * 10 ** 11, "read_calls": 10 ** 6,
               "write_calls": 5000, "read_device": 2 * 10 ** 12, "write_device": 10 ** 11, "best_read": 2.5e9, "best_write": 1.1e9,
               "exposed": wall // 50, "hidden": wall // 20, "saves": 9, "save_time": wall // 100, "save_bytes": 9 * 10 ** 10,
               "steps": io_steps(count)},
        "energy": {"asked": 1, "why_not": "1 of 3 counters of energy cannot be read: " + HOSTILE, "rows": [
            energy("gpu0", "(run)", 3.2e6, count), energy("gpu0", "", 3e6, count),
            energy("package-0", HOSTILE, 0, count, refused=True)], "held_by": "power cap", "held_steps": 12},
        "goodput": {"up": wall, "parts": {part: int(share * wall) for part, share in GOODPUT.items()}, "steps": count, "recomputed": count // 25},
        "memory": {"looks": 900, "resident": 6 * 10 ** 10, "most_resident": 7 * 10 ** 10, "most_private": 5 * 10 ** 10, "minor_faults": 9 * 10 ** 6,
                   "major_faults": 12, "growth": {"steps": count * 3 // 4, "per_step": 3 * 10 ** 6, "z": 8},
                   "step_minor": dist([80, 90, 100]), "step_major": {"count": 0}, "limit": 10 ** 11, "used": 7 * 10 ** 10,
                   "limit_of": "cgroup", "allocator": "libc.so.6", "live": 4 * 10 ** 10, "peak": 5 * 10 ** 10, "within": 65536,
                   "regions": [used(name) for name in ("", HOSTILE)]},
        "gpu_memory": gpu_memory()}


def report(count=100_000, base=40 * MS, seed=1, name="train"):
    rng = random.Random(seed)
    took, steps = steps_of(rng, count, base)
    wall = sum(took) + 250 * MS
    steps["utilisation"] = {"steps": count, "time": sum(took), "model": 4e14 * sum(took) / 1e9, "hardware": 5e14 * sum(took) / 1e9, "peak": 9.89e14,
                            "mfu": 0.404, "hfu": 0.506, "precision": "bf16", "source": "one GPU by its data sheet"}
    return {
        "format": "perfkit report", "schema": 1,
        "run": {"program": name, "host": "node07", "version": "0.1.0", "pid": 4242, "rank": 3, "world_size": 8,
                "start_unix": 1795173753123456789, "wall": wall, "cpu": wall, "clock": "tsc", "clock_hz": 2.6e9,
                "clock_step_ns": 0.4, "clock_uncertainty_ns": 35.5, "trace_path": "train-3.json.gz", "source": "session",
                "complete": True},
        "verdicts": [
            {"name": "communication-heavy", "severity": "warning", "value": 0.34, "threshold": 0.3,
             "text": "Communication takes 34.1 % of the step (threshold 30 %): overlap it with the backward pass."},
            {"name": "gpu-bound", "severity": "good", "value": 0.82, "threshold": 0.8, "text": "GPU 0 is busy for 82 % of the step."},
            {"name": "warm-up", "severity": "note", "value": 3, "threshold": 0, "text": "The first 3 steps: " + HOSTILE}],
        "steps": steps,
        "gpus": [gpu(rng, 0, took, True), gpu(rng, 1, took[:600], False)],
        "kernels": [{"name": f"void kernel_{i}<float, {HOSTILE if i == 1 else 'int'}>(float*)", "region": "backward", "region_share": 0.9,
                     "time": dist([90_000 / (i + 1) * (1 + 0.1 * rng.random()) for _ in range(300)])} for i in range(40)],
        "comm": collectives(rng), **costs(wall, count), "events": events(1 if seed == 1 else 0.8),
        "regions": [region(rng, "backward", "compute", 16 * MS, 2000, 0.4, flops=10 ** 15),
                    region(rng, "forward", "compute", 8 * MS, 2000, 0.2), region(rng, HOSTILE, "data", 5 * MS, 900, 0.13, bytes=10 ** 12),
                    region(rng, "all_reduce", "comm", 5 * MS, 2000, 0.14), region(rng, "once", "other", 77, 1),
                    *(region(rng, f"layer[{i}]", "compute", MS / 3, 60, 0.001) for i in range(60))],
        "roofline": {"measured": 1795369527, "host": "node07", "cpu": "A processor", "processors": 64,
                     "bandwidth_one": 2.4e10, "bandwidth_all": 3.8e11, "double_one": 5.8e10, "double_all": 1.9e12,
                     "single_one": 1.17e11, "single_all": 3.8e12, "regions": [
                         roofed("backward", 0.4, 64, 31.5, 2.9e12), roofed("forward", 0.2, 1, 0.083, 1.6e9),
                         roofed(HOSTILE, 0.1, 3.2, 2, 9e10), {**roofed("copy", 0.01, 1, 0, 0), "bytes_per_second": 2e10}]},
        "threads": [{"name": "main", "tid": 4242, "recorded": 10 ** 6, "kinds": {"compute": wall // 2, "comm": wall // 9}},
                    {"name": HOSTILE, "tid": 4250, "ended": True, "recorded": 99, "dropped": 12, "kinds": {"data": wall // 3}}],
        "counters": [counter(rng, "gpu0.memory", "bytes", 5.0e10, 6.2e10, wall), counter(rng, "gpu0.power", "W", 380, 640, wall),
                     counter(rng, "loss", "", 0.2, 4.1, wall, samples=1), counter(rng, HOSTILE, "°C", 40, 71, wall),
                     counter(rng, "memory.resident", "bytes", 5e10, 7e10, wall), counter(rng, "memory.allocated", "bytes", 3e10, 5e10, wall),
                     counter(rng, "gpu0.allocated", "bytes", 4e10, 6e10, wall), counter(rng, "gpu0.pool_reserved", "bytes", 5e9, 1e10, wall),
                     {"name": "rare", "unit": "", "value": dist([1, 2, 3]), "last": 3}],
        "counts": {"threads": 2, "begun": 10 ** 6 + 12, "recorded": 10 ** 6, "dropped": 12, "points": 4096, "steps": count},
        "overhead": {"region_ns": 23.1, "total": 3.44e8, "share": 0.0069, "collector": 3e8, "recording": 2.3e7, "callers": 2.1e7, "backends": 0},
        "backends": [{"name": "cuda", "live": True, "version": "13.0", "reason": ""},
                     {"name": "nvml", "live": False, "version": "", "reason": "libnvidia-ml.so.1 " + HOSTILE}]}


def write(path, **options):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report(**options), file)

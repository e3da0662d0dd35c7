"""traces.py - traces as perfkit writes them, captures, and a folder for each test: what tests of pk share."""

import json
import os
import random
import re
import subprocess
import tempfile
import unittest


# ---- folders ----


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)


# ---- brief forms ----

FIELD = re.compile(r' ([a-z0-9_]+)=("(?:[^"\\]|\\.)*"|[^" ]+)')


def brief(text):
    """[(key, {field: text})] of a brief form, and that it is one."""
    lines = text.splitlines()
    assert len(lines) <= 60, len(lines)
    out = []
    for line in lines:
        key, _, rest = line.partition(":")
        fields = {"": rest[1:]} if key == "next" else dict(FIELD.findall(rest))
        assert key == "next" or not FIELD.sub("", rest), line
        out.append((key, {name: json.loads(value) if value[:1] == '"' else value for name, value in fields.items()}))
    return out


# ---- traces ----

PID, LOADER, STEPS_TRACK = 4242, 4250, 4294967294

HEAD = (
    '{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":1795173753123456789,\n'
    '"distributedInfo":{"backend":"nccl","rank": 3,"world_size":8},\n'
    '"metadata":{"perfkit":"0.1.0","host":"node07","program":"train","pid":4242,"rank": 3,"world_size":8,'
    '"start_unix_ns":1795173753123456789,"complete":true ,"clock":{"source":"tsc","hz":  2600000000,'
    '"step_ns":  0.5,"uncertainty_ns":  35.5,"drift_ppm":  0.21,"base_monotonic_ns":  123},'
    '"counts":{"begun":  1400,"recorded":  1400,"written":  1,"dropped":  0,"unbalanced":  0,"too_deep":  0,'
    '"stray_ends":  0,"points":  400,"points_dropped":  0,"unwritten":  0,"threads":  2,"regions":  6,'
    '"steps":  200}},\n'
    '"traceEvents":[\n'
)


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


def length(ns):
    """perfkit's slices end a fraction of a nanosecond early (lib/out/chrome/chrome.c)."""
    return us(ns - 1) + "796" if ns else "0.000"


def slice_of(name, tid, start, end, colour=None, args=None):
    parts = ['{"ph":"X","cat":"cpu_op","name":', json.dumps(name)]
    if colour:
        parts.append(f',"cname":"{colour}"')
    parts.append(f',"pid":{PID},"tid":{tid},"ts":{us(start)},"dur":{length(end - start)}')
    if args:
        parts.append(',"args":' + json.dumps(args, separators=(",", ":")))
    return "".join(parts) + "}"


def step_of(index, start, end, items=256, thread=PID):
    args = json.dumps({"thread": thread, "items": items}, separators=(",", ":"))
    return (f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{index}","pid":{PID},'
            f'"tid":{STEPS_TRACK},"ts":{us(start)},"dur":{length(end - start)},"args":{args}}}')


def named(tid, name):
    return (f'{{"ph":"M","cat":"__metadata","name":"thread_name","pid":{PID},"tid":{tid},"ts":0.000,'
            f'"args":{{"name":"{name}"}}}}')


def events(steps=200):
    """A loop that waits for input three quarters of its time; each thread's slices by their ends."""
    rng, now, before = random.Random(3), 300_000_000, 0
    out = [named(PID, "main"), named(LOADER, "loader 0")]
    for i in range(steps):
        begin = now
        now += rng.randint(20_000_000, 24_000_000)
        out.append(slice_of("next batch", PID, begin, now, "rail_load"))
        forward = now
        for _ in range(2):
            start, now = now + 1000, now + rng.randint(1_900_000, 2_100_000)
            out.append(slice_of("attention[seq=512]", PID, start, now, "thread_state_running",
                                {"seq": 512, "flops": 1000000}))
            start, now = now + 1000, now + rng.randint(900_000, 1_100_000)
            out.append(slice_of("mlp", PID, start, now, "thread_state_running"))
        now += 500_000
        out.append(slice_of("forward", PID, forward, now, "thread_state_running"))
        now += 200_000
        out.append(step_of(i, before, now))
        out.append(slice_of("read file", LOADER, begin, begin + 22_000_000, "rail_load", {"bytes": 1000000}))
        out.append(f'{{"ph":"C","cat":"counter","name":"loss","pid":{PID},"tid":{PID},"ts":{us(now)},'
                   f'"args":{{"value":{5 / (1 + i):g}}}}}')
        before = now
    return out


def trace(lines=None, tail="\n]}\n", head=HEAD):
    return head + ",\n".join(events() if lines is None else lines) + tail


# ---- captures of a loop of which one step is slow ----

MS = 1_000_000

GPU = 9001  # the pid of the device's tracks


def kernel(name, start, end):
    return (f'{{"ph":"X","cat":"kernel","name":"{name}","pid":{GPU},"tid":7,"ts":{us(start)},"dur":{us(end - start)},'
            '"args":{"device":0,"stream":7}}')


def step_events(index, begin, load=2 * MS, kind=None, read=3 * MS):
    """A step of load, forward (two layers) and a gap; a loader beside it; a kernel. Answers its end, too."""
    now, out = begin, []
    out.append(slice_of("load", PID, now, now + load, "rail_load"))
    out.append(slice_of("read file", LOADER, now, now + read, "rail_load"))
    now += load
    forward = now
    for layer in range(2):
        out.append(slice_of("attention", PID, now, now + 3 * MS, "thread_state_running"))
        now += 3 * MS
        out.append(slice_of(f"mlp[layer={layer}]", PID, now, now + 2 * MS, "thread_state_running"))
        now += 2 * MS + 100_000
    out.append(slice_of("forward", PID, forward, now, "thread_state_running"))
    out.append(kernel("gemm", forward, forward + MS))
    now += 500_000
    step = step_of(index, begin, now)
    out.append(step if kind is None else step.replace('"items":', f'"kind":"{kind}","items":'))
    return out, now


def io_reading(end, read=0, written=0, device_read=0, device_written=0, operations=0, steps=1):
    """The counters that costs=io leaves at a step's end."""
    values = {"io.read": ("bytes", read), "io.written": ("bytes", written), "io.device_read": ("bytes", device_read),
              "io.device_written": ("bytes", device_written), "io.operations": ("calls", operations), "io.steps": ("steps", steps)}
    return [f'{{"ph":"C","name":"{name}","pid":{PID},"tid":{PID},"ts":{us(end)},"args":{{"{unit}":{value}}}}}'
            for name, (unit, value) in values.items()]


DEVICE = [f'{{"ph":"M","cat":"__metadata","name":"process_name","pid":{GPU},"tid":7,"ts":0.000,"args":{{"name":"GPU 0"}}}}',
          f'{{"ph":"M","cat":"__metadata","name":"thread_name","pid":{GPU},"tid":7,"ts":0.000,"args":{{"name":"stream 7"}}}}']


def loop(loads, first=38, kinds=None, around=True):
    """Events of steps whose `load` takes so long each, and a region that is open around all of them on a third thread."""
    now, out, rows = 500 * MS, [named(PID, "trainer"), named(LOADER, "loader"), *DEVICE], []
    for i, load in enumerate(loads):
        kind = (kinds or {}).get(first + i)
        lines, end = step_events(first + i, now, load, kind, max(load, 3 * MS))
        rows.append({"step": first + i, "start_ns": now, "duration_ns": end - now, "items": 256, "kind": kind or ""})
        out += lines
        now = end
    if around:
        out.append(slice_of("monitor", 4260, 499 * MS, now + MS))
    return out, rows


def capture(events, rows, **about):
    said = {"reason": "slow", "text": "", "first": rows[0]["step"], "last": rows[-1]["step"], "cut": False, "beginning_gone": False,
            "full": False, "records_lost": 0, "refused": 0, "kernels": [], "steps": rows} | about
    if said["reason"] == "slow" and "slow_step" not in about:
        worst = max(rows, key=lambda row: row["duration_ns"])
        said |= {"slow_step": worst["step"], "slow_ns": worst["duration_ns"], "median_ns": 12_700_000}
    return trace(events, tail='\n],\n"perfkitCapture":' + json.dumps(said) + "}\n")


class InStates(InFolder):
    """Reports on captures of a slow step; pk is the command."""

    pk = None

    def file(self, text, name="capture.json"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def report(self, *arguments, **more):
        done = subprocess.run([self.pk, "report", *arguments], capture_output=True, timeout=300, check=False, text=True, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def with_states(self, *states):
        """Step 41 loads for 43 ms, and was off: (name, from and until in ns of it, more arguments)."""
        events, rows = loop([2 * MS, 2 * MS, 2 * MS, 43 * MS])
        for name, start, end, more in states:
            args = json.dumps({"thread": PID} | more, separators=(",", ":"))
            start += rows[3]["start_ns"]
            events.append(f'{{"ph":"X","cat":"thread_state","name":"{name}","pid":{PID},"tid":1079000000,"ts":{us(start)},'
                          f'"dur":{us(end + rows[3]["start_ns"] - start)},"args":{args}}}')
        path = self.file(capture(events, rows))
        beside = json.loads(self.report("--json", path))["beside"]
        own = {row["path"]: row["self"] for row in beside["paths"] if not row["where"]}
        self.assertEqual(sum(own.values()), beside["took"])
        return own, beside, " ".join(self.report(path).split())

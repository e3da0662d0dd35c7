"""slow_trace.py - captures as perfkit writes them: a loop of which one step is slow, for the tests of what reads them."""

import json

import traces

MS = 1_000_000
GPU = 9001  # the pid of the device's tracks


def kernel(name, start, end):
    return (f'{{"ph":"X","cat":"kernel","name":"{name}","pid":{GPU},"tid":7,"ts":{traces.us(start)},"dur":{traces.us(end - start)},'
            '"args":{"device":0,"stream":7}}')


def step_events(index, begin, load=2 * MS, kind=None, read=3 * MS):
    """A step of load, forward (two layers) and a gap; a loader beside it; a kernel. Answers its end, too."""
    now, out = begin, []
    out.append(traces.slice_of("load", traces.PID, now, now + load, "rail_load"))
    out.append(traces.slice_of("read file", traces.LOADER, now, now + read, "rail_load"))
    now += load
    forward = now
    for layer in range(2):
        out.append(traces.slice_of("attention", traces.PID, now, now + 3 * MS, "thread_state_running"))
        now += 3 * MS
        out.append(traces.slice_of(f"mlp[layer={layer}]", traces.PID, now, now + 2 * MS, "thread_state_running"))
        now += 2 * MS + 100_000
    out.append(traces.slice_of("forward", traces.PID, forward, now, "thread_state_running"))
    out.append(kernel("gemm", forward, forward + MS))
    now += 500_000
    step = traces.step_of(index, begin, now)
    out.append(step if kind is None else step.replace('"items":', f'"kind":"{kind}","items":'))
    return out, now


def io_reading(end, read=0, written=0, device_read=0, device_written=0, operations=0, steps=1):
    """The counters that costs=io leaves at a step's end."""
    values = {"io.read": ("bytes", read), "io.written": ("bytes", written), "io.device_read": ("bytes", device_read),
              "io.device_written": ("bytes", device_written), "io.operations": ("calls", operations), "io.steps": ("steps", steps)}
    return [f'{{"ph":"C","name":"{name}","pid":{traces.PID},"tid":{traces.PID},"ts":{traces.us(end)},"args":{{"{unit}":{value}}}}}'
            for name, (unit, value) in values.items()]


DEVICE = [f'{{"ph":"M","cat":"__metadata","name":"process_name","pid":{GPU},"tid":7,"ts":0.000,"args":{{"name":"GPU 0"}}}}',
          f'{{"ph":"M","cat":"__metadata","name":"thread_name","pid":{GPU},"tid":7,"ts":0.000,"args":{{"name":"stream 7"}}}}']


def loop(loads, first=38, kinds=None, around=True):
    """Events of steps whose `load` takes so long each, and a region that is open around all of them on a third thread."""
    now, out, rows = 500 * MS, [traces.named(traces.PID, "trainer"), traces.named(traces.LOADER, "loader"), *DEVICE], []
    for i, load in enumerate(loads):
        kind = (kinds or {}).get(first + i)
        lines, end = step_events(first + i, now, load, kind, max(load, 3 * MS))
        rows.append({"step": first + i, "start_ns": now, "duration_ns": end - now, "items": 256, "kind": kind or ""})
        out += lines
        now = end
    if around:
        out.append(traces.slice_of("monitor", 4260, 499 * MS, now + MS))
    return out, rows


def capture(events, rows, **about):
    said = {"reason": "slow", "text": "", "first": rows[0]["step"], "last": rows[-1]["step"], "cut": False, "beginning_gone": False,
            "full": False, "records_lost": 0, "refused": 0, "kernels": [], "steps": rows} | about
    if said["reason"] == "slow" and "slow_step" not in about:
        worst = max(rows, key=lambda row: row["duration_ns"])
        said |= {"slow_step": worst["step"], "slow_ns": worst["duration_ns"], "median_ns": 12_700_000}
    return traces.trace(events, tail='\n],\n"perfkitCapture":' + json.dumps(said) + "}\n")

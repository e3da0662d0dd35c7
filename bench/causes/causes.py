"""causes.py PK PROGRAM [--runs N] [--only NAME,NAME] [--load | --quiet] [--without perf|proc|cgroups] [--ms MS]
[--json OUT] [--keep FOLDER] - what captures say of steps that are slow for a known reason, beside the truth.

PROGRAM NAME makes one slow step and measures what made it slow (causes.c). Each cause runs N times (10) on the machine as
it is, and N times beside two busy processes of this script's (--load: these alone, --quiet: the others). The bar: the
first cause that `pk report` names is the one that was made in 95 % of runs, its ms within 10 % or 2 ms; a region of the
program is accused for what came from outside in 1 % at most; causes add up to the excess within 2 %. A capture that is
missing is wrong; a region is accused that has a tenth of the excess or more. `--only priority,quota` says which; what
this machine cannot make is skipped, with the reason. Of causes inside the program, what others took meanwhile, as the
kernel says (delay_ms), is no wrong answer.

--without: the kernel refuses perf_event_open, as container runtimes have it do; or there is no /proc; or no
/sys/fs/cgroup (as root). UNKNOWN has what cannot be known then and the words that are no guess, which are right, too; NOBODY those of
whom nobody can say who it was.

--smoke instead: three cheap causes once, of which only what no clock decides is asked."""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

RIGHT, WITHIN, WITHIN_MS, ACCUSED, ADDS_UP = 0.95, 0.10, 2, 0.01, 0.02
SMOKE, SMOKE_MS, SEEN_MS = ("mutex", "dns", "function"), 60, 250  # so long that it is looked at
REFUSED = {"perf": "perf_event_open", "proc": "/proc"}
MISSING = "no capture"
NOT_WHAT = ("mutex", "cold-read", "fsync", "pipe", "socket", "dns", "reclaim", "terminal")
UNKNOWN = {"": {}, "perf": {"page-faults": "compute", "trim": "compute"}, "cgroups": {},
           "proc": {"page-faults": "compute", "trim": "compute", "compaction": "compute", "loader-computes": "wait", "loader-waits": "wait",
                    **{name: "wait" for name in NOT_WHAT}}}
NOBODY = {"": (), "perf": ("function",), "cgroups": ("quota",),
          "proc": ("priority", "quota", "openmp", "mutex", "loader-computes", "loader-waits", "function")}


# ---- a run ----

def make(program, name, ms, folder, *without, **more):
    """(truth, None), or (None, why it is skipped)."""
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ, **more}
    with subprocess.Popen([program, name, str(ms), "--capture-folder", folder, *without], stdout=subprocess.PIPE, text=True,
                          env=environment) as running:
        try:
            said, _ = running.communicate(timeout=60 + ms / 10)
        except subprocess.TimeoutExpired:
            running.terminate()  # it takes its worker and its group with it
            raise
    if running.returncode == 77:
        return None, said.strip()
    if running.returncode != 0:
        raise RuntimeError(f"{name}: exit status {running.returncode}")
    return json.loads(said), None


def report(pk, path):
    said = subprocess.run([pk, "report", "--json", path], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise RuntimeError(f"pk report {path}: {said.stderr.strip()}")
    return json.loads(said.stdout)


def beside_of(pk, folder, step):
    """What is said of that step; None: it was not captured."""
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        beside = report(pk, path).get("beside")
        if beside and beside.get("step") == step:
            return beside
    return None


# ---- what was said, beside the truth ----

def says(cause, word):
    """In whatever stands beside the token."""
    return word.lower() in json.dumps({**cause, "cause": ""}).lower()


def is_expected(cause, truth):
    """By the token, and in the region that it happened in, unless the words say which one it was."""
    for wanted in truth["expected"]:
        token, _, word = wanted.partition("@")
        if cause["cause"] != token or word and not says(cause, word):
            continue
        if word or truth["outside"] or cause.get("region", "").startswith(truth["region"]):
            return True
    return False


def without_others(causes, truth):
    """Beside load others have the processor as well; as long as the program has found, too, this is no wrong answer."""
    others = [c for c in causes if c["outside"] and not is_expected(c, truth)]
    known = sum(c["ns"] for c in others) / 1e6 <= max(truth["delay_ms"], 0) * (1 + WITHIN) + WITHIN_MS
    return [c for c in causes if c not in others] if known else causes


def error_of(told, truth):
    """What may be counted or not: of a read that waited, what it computed while it did not; of a wait for the loader,
    that for which it had no processor; of a step of another kind, what it left out."""
    least, most = sorted((truth["truth_ms"], truth["whole_ms"]))
    return told - max(least, min(told, most))


def judge(truth, beside):
    if beside is None:
        return {"said": MISSING, "right": False, "who": False, "near": False, "error": None, "accused": False, "adds_up": False}
    causes, excess = beside.get("causes", []), beside["took"] - beside["usual"]
    left = without_others(causes, truth)
    named = [c for c in left if is_expected(c, truth)]
    error = error_of(sum(c["ns"] for c in named) / 1e6, truth)
    inside = sum(c["ns"] for c in causes if not c["outside"] and c.get("region"))
    return {"said": left[0]["cause"] if left else "nothing", "right": bool(left) and is_expected(left[0], truth),
            "who": not truth["who"] or bool(named) and says(named[0], truth["who"]), "error": error,
            "near": abs(error) <= max(WITHIN_MS, WITHIN * truth["truth_ms"]),
            "accused": truth["outside"] and inside > 0.1 * excess,
            "adds_up": abs(excess - sum(c["ns"] for c in causes)) <= ADDS_UP * abs(excess)}


def run(options, name, number, load):
    """A record of a run, or None and why it is skipped."""
    folder = tempfile.mkdtemp(prefix="causes-")
    try:
        truth, why = make(options.program, name, options.ms, folder, *([options.without] if options.without else []))
        if truth is None:
            return None, why
        truth["expected"] += [UNKNOWN[options.without][name]] if name in UNKNOWN[options.without] else []
        truth["who"] = "" if name in NOBODY[options.without] else truth["who"]
        beside = beside_of(options.pk, folder, truth["step"])
        if options.keep:
            kept = os.path.join(options.keep, f"{name}-{'load' if load else 'quiet'}-{number}")
            shutil.copytree(folder, kept, dirs_exist_ok=True)
        return {"load": load, **truth, **judge(truth, beside), "causes": (beside or {}).get("causes")}, None
    finally:
        shutil.rmtree(folder)


# ---- the table ----

def share(runs, what):
    return sum(bool(r[what]) for r in runs), len(runs)


def row(name, runs):
    errors = [r["error"] for r in runs if r["error"] is not None]
    typical = f"{statistics.median(errors):+9.1f}{max(errors, key=abs):+9.1f}" if errors else f"{'-':>9}{'-':>9}"
    counts = "".join(f"{share(runs, what)[0]:>9}" for what in ("right", "who", "near"))
    accused = share(runs, "accused")[0] if runs[0]["outside"] else "-"
    said = sorted({r["said"] for r in runs if not r["right"]})
    truth = statistics.median(r["truth_ms"] for r in runs)
    print(f"{name:16}{len(runs):>5}{truth:>9.1f}{counts}{typical}{accused:>9}{share(runs, 'adds_up')[0]:>9}  "
          f"{', '.join(said)}".rstrip(), flush=True)


def heading(load):
    print(f"\n{'beside load' if load else 'quiet'}, load average {os.getloadavg()[0]:.1f}\n"
          f"{'cause':16}{'runs':>5}{'truth ms':>9}{'first':>9}{'who':>9}{'near':>9}{'error':>9}{'worst':>9}{'accused':>9}"
          f"{'adds up':>9}  said instead", flush=True)


def totals(runs):
    def line(of, what, bar, most=False):
        count, all_of = share(of, what)
        part = count / all_of if all_of else 0
        met = part <= bar if most else part >= bar
        return f"{count} of {all_of} ({part:.1%}, bar {bar:.0%}{' at most' if most else ''}): {'met' if met else 'missed'}"
    print("\nfirst cause right       " + line(runs, "right", RIGHT))
    print("its ms within the bound " + line(runs, "near", RIGHT))
    print("a region was accused    " + line([r for r in runs if r["outside"]], "accused", ACCUSED, True))
    print("causes add up           " + line(runs, "adds_up", 1))


def all_runs(options, names, load):
    records = []
    heading(load)
    for name in names:
        mine = []
        for number in range(options.runs):
            try:
                record, why = run(options, name, number, load)
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as failure:
                print(f"{name:16} failed: {failure}", flush=True)
                options.failed = True
                continue
            if record is None:
                print(f"{name:16} skipped: {why}", flush=True)
                break
            mine.append(record)
        if mine:
            row(name, mine)
        records += mine
    return records


def beside_load(options, names):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        return all_runs(options, names, True)
    finally:
        for process in busy:
            process.kill()
            process.wait()


# ---- what no clock decides ----

def smoke_one(options, name, ms, *without):
    folder = tempfile.mkdtemp(prefix="causes-")
    try:
        truth, why = make(options.program, name, ms, folder, *without, PK_CAPTURE="slow=1.5;steps=40", PK_OVERRIDE="1")
        if truth is None:
            print(f"{name}: skipped: {why}")
            return
        assert truth["cause"] == name and truth["expected"] and truth["region"], truth
        said = [beside for path in glob.glob(os.path.join(folder, "*.json")) if (beside := report(options.pk, path).get("beside"))]
        assert any(beside.get("took", 0) > 0 for beside in said), f"{name}: no capture that says why"
        for beside in said:
            judge(truth, beside)
        for what in without:
            assert any(REFUSED[what] in beside["untold"] for beside in said), f"{what}: nothing is said of it"
    finally:
        shutil.rmtree(folder)


def smoke(options):
    for name in SMOKE:
        smoke_one(options, name, SMOKE_MS)
    for what in REFUSED:
        smoke_one(options, "dns", SEEN_MS, what)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("pk", type=os.path.abspath)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only")
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--without", default="", choices=[w for w in UNKNOWN if w])
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--ms", type=float, default=200)
    parser.add_argument("--json", type=os.path.abspath)
    parser.add_argument("--keep", type=os.path.abspath)
    options = parser.parse_args()
    options.failed = False
    if options.smoke:
        smoke(options)
        return
    names = subprocess.run([options.program, "list"], capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in names if not options.only or name in options.only.split(",")]
    records = [] if options.load else all_runs(options, names, False)
    records += [] if options.quiet else beside_load(options, names)
    totals(records)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)
    sys.exit(1 if options.failed else 0)


if __name__ == "__main__":
    main()

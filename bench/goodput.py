"""goodput.py PK PK_TRAIN [KILLS] - the demo, killed and started again so many times (20): whether the parts of its life
sum to its wall time as it is measured from outside, and whether the steps that were lost are those that were made again.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time


def last_line(path, offset):
    """The last whole line behind that place; one without a checkpoint if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        lines = []
    return lines[-2] if len(lines) > 1 else b" saves=0 "


def run(train, folder, kill):
    """Until there is a checkpoint of this run, and somewhat longer; then it is killed, or asked to end."""
    state = os.path.join(folder, "run.goodput")
    before = os.path.getsize(state) if os.path.exists(state) else 0
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
    environment.update(PK_GOODPUT_PATH=state, PK_BACKENDS="none")
    program = subprocess.Popen(
        [train, "--quiet", "--steps", "1000000", "--layers", "1", "--dim", "16", "--seq", "32", "--resume",
         "--checkpoint", os.path.join(folder, "checkpoint"), "--checkpoint-every", "50"],
        env=environment, cwd=folder, stdout=subprocess.DEVNULL)
    while b" saves=0 " in last_line(state, before):
        if program.poll() is not None:
            sys.exit(f"pk-train has ended by itself: {program.returncode}")
        time.sleep(0.02)
    time.sleep(random.uniform(0, 0.3))
    program.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
    program.wait()


def main():
    pk, train = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        for i in range(kills + 1):
            run(train, folder, i < kills)
        measured = time.monotonic() - began
        path = os.path.join(folder, "run.goodput")
        text = subprocess.run([pk, "job", path], check=True, capture_output=True, text=True).stdout
        life = json.loads(subprocess.run([pk, "job", "--json", path], check=True, capture_output=True).stdout)
    life = life["goodput"][0]
    parts, wall = sum(life["parts"].values()), life["wall"] / 1e9
    print(text)
    print(f"{kills} kills: parts sum to {parts / life['wall']:.4%} of the wall time, which is {wall / measured:.3%} of the"
          f" {measured:.2f} s measured from outside")
    problems = [what for what, wrong in (
        ("the parts do not sum to the wall time", parts != life["wall"]),
        ("the wall time is more than has passed", wall > measured + 0.02),  # a process's start is known to 10 ms
        (f"{life['runs']} runs, {life['ended']} ended", life["runs"] != kills + 1 or life["ended"] != 1),
        ("no step was made again", kills > 2 and not life["recomputed"]),
        ("steps are missing", life["steps"] - life["recomputed"] < life["furthest"] - 50 * kills),
        ("more steps than the training has", life["steps"] - life["recomputed"] > life["furthest"] + 50 * kills),
        ("lines are damaged", life["damaged"] > 0),
        ("the last checkpoint is not the end", life["checkpoint_step"] != life["furthest"])) if wrong]
    sys.exit("; ".join(problems) or 0)


if __name__ == "__main__":
    main()

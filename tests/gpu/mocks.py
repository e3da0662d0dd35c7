"""mocks.py BUILD DEVICE CUPTI NCCL NVML CUBLAS - the tests on a GPU, on mocks of what NVIDIA brings: each of them does what it is
to do and tells each of its figures, and those that look for something wrong find it where it is."""

import glob
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import prove
import results

build = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
# run.sh and the script below start python3 forty times: this one, which may take a tenth of what another in PATH does.
environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
               "PK_GPU_MOCK": "1", "PK_GPU_CLOCK_SECONDS": "2", "FAKE_NVML_DEVICE": "1",
               "PYTHONPATH": os.path.join(here, "mock"),
               **dict(zip(("PK_CUDA_LIBRARY", "PK_CUPTI_LIBRARY", "PK_NCCL_LIBRARY", "PK_NVML_LIBRARY", "PK_CUBLAS_LIBRARY"),
                          map(os.path.abspath, sys.argv[2:])))}
complaints = []

# What is wrong with the mock, and the tests that have to say so.
FAULTS = {"waits": ["idle"], "late": ["anchors"], "push": ["threads", "faults"], "elapsed": ["threads"],
          "kernels": ["kernels", "deep", "cost", "modules", "processes"], "allocations": ["memory"], "longer": ["kernels"],
          "shorter": ["verdicts"], "beside": ["overlap"], "dies": ["storm"], "tensor": ["gemm"],
          "clock": ["profiler"], "exchange": ["capture"], "plugin": ["nccl"]}
# As nccl-tests print it.
ALL_REDUCE_PERF = """#!/bin/sh
echo "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
echo "        8192          2048     float     sum      -1     8.10    1.01    1.01      0     8.20    1.00    1.00      0"
echo "   268435456      67108864     float     sum      -1   2692.1   99.71   99.71      0   2692.2   99.71   99.71      0"
"""
# What test `train` runs, and reads: a line of figures, and a trace of 400 steps.
TRAIN = """#!/usr/bin/env python3
import sys
path = sys.argv[sys.argv.index("--trace") + 1] if "--trace" in sys.argv else None
steps = int(sys.argv[sys.argv.index("--steps") + 1])
if path:
    with open(path, "w") as file:
        for name in ("forward", "backward", "optimizer", "copy"):
            for step in range(steps):
                print('{"ph":"X","cat":"gpu_user_annotation","name":"%s","ts":%d,"dur":1}' % (name, step), file=file)
        for step in range(101 if "--cupti" in sys.argv else 0):
            print('{"ph":"X","cat":"kernel","name":"k","ts":%d,"dur":1,"args":{"region":"r","correlation":%d}}' % (step, step + 1),
                  file=file)
print(f"steps={steps} batch=1 step_ms=1.000000 window_ms=1.000000 total_ms=9 loss=1 checksum=abc")
"""


def run(folder, tests, **more):
    figures = os.path.join(folder, "figures.tsv")
    done = subprocess.run([os.path.join(here, "run.sh"), "--seconds", "300", build, *tests], capture_output=True, text=True,
                          check=False, env={**environment, "PK_GPU_FIGURES": figures, **more})
    return results.read([figures]) if os.path.exists(figures) else {}, done


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def check_all(folder):
    script(folder, "all_reduce_perf", ALL_REDUCE_PERF)
    seen, done = run(folder, [], PK_NCCL_TESTS=folder, PK_GPU_TRAIN=script(folder, "train", TRAIN))
    for name in results.tests():
        outcome = seen.get(name, {}).get("outcome", "not there")
        if not outcome.startswith("well"):
            complaints.append(f"{name}: {outcome}\n{done.stdout}{done.stderr}")
    told = {key for test in seen.values() for key in test["figures"]}
    root = os.path.join(here, "..", "..")
    missing = {key for name in results.tests() for key in keys_of(root, name)} - told
    complaints.extend(f"{key} is not told" for key in sorted(missing))


def keys_of(root, name):
    keys = set()
    for path in glob.glob(os.path.join(root, "tests", "gpu", name + ".*")):
        with open(path, encoding="utf-8") as file:
            keys |= {first or second for first, second in prove.KEY.findall(file.read())}
    return keys


def check_no_torch():
    with tempfile.TemporaryDirectory() as folder:
        script(folder, "torch.py", "raise ImportError('of this test')")
        seen, done = run(folder, ["profiler", "preload"], PYTHONPATH=folder)
        for name in ("profiler", "preload"):
            outcome = seen.get(name, {}).get("outcome", "not there")
            if outcome != "skipped: torch is not there: ImportError: of this test":
                complaints.append(f"without torch, {name}: {outcome}\n{done.stdout}{done.stderr}")


def check_wrong_peak():
    """A share of another peak than the test's own arithmetic has."""
    with tempfile.TemporaryDirectory() as folder:
        seen, done = run(folder, ["gemm"], PK_PEAK="bf16:900e12")
        if not seen.get("gemm", {}).get("outcome", "").startswith("failed (1)"):
            complaints.append(f"with another peak, gemm: {seen}\n{done.stdout}{done.stderr}")


def check_no_blas():
    with tempfile.TemporaryDirectory() as folder:
        seen, done = run(folder, ["gemm"], PK_CUBLAS_LIBRARY=os.path.join(folder, "none.so"))
        if not seen.get("gemm", {}).get("outcome", "").startswith("skipped: there is no cuBLAS"):
            complaints.append(f"without cuBLAS, gemm: {seen}\n{done.stdout}{done.stderr}")


def check_fault(fault):
    with tempfile.TemporaryDirectory() as folder:
        seen, done = run(folder, FAULTS[fault], FAKE_DEVICE_FAULT=fault)
        for name in FAULTS[fault]:
            outcome = seen.get(name, {}).get("outcome", "not there")
            if not outcome.startswith("failed (1)") or not seen[name]["wrong"]:
                complaints.append(f"with {fault}, {name}: {outcome}\n{done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor() as pool:
    jobs = [pool.submit(check_all, temporary), pool.submit(check_no_torch), pool.submit(check_wrong_peak),
            pool.submit(check_no_blas),
            *(pool.submit(check_fault, fault) for fault in FAULTS)]
    for job in jobs:
        job.result()
print("\n".join(complaints))
sys.exit(1 if complaints else 0)

"""affected.py SOURCE BUILD - `./dev check` finds what an edit can affect (tests/affected.py)."""

import os
import subprocess
import sys

EXPECTED = {
    "lib/core/join.c": ["all", "suite house", "suite unit", "suite tools"],
    "lib/comm/mpi/wait.c": ["all", "suite house", "suite mpi"],
    "tests/unit/test_text.c": ["build tests/unit/unit-test_text", "suite house", "test test_text"],
    "tests/golden/report-gpu.txt": ["all", "suite house", "suite unit"],
    "tests/house/layers.py": ["all", "suite house", "suite proof"],
    "tests/again.py": ["all", "suite house", "suite proof"],
    "dev": ["all", "suite house", "suite proof"],
    "docs/guide.md": ["suite house", "page docs/guide.md"],
}


def main(source, build):
    wrong = 0
    for file, expected in EXPECTED.items():
        said = subprocess.run([sys.executable, "-B", os.path.join(source, "tests/affected.py"), source, build, file],
                              check=True, capture_output=True, text=True).stdout.splitlines()
        if said != expected or not os.path.exists(os.path.join(source, file)):
            wrong += 1
            print(f"{file}: {said}, not {expected}")
    return wrong > 0


sys.exit(main(*sys.argv[1:]))

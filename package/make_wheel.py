"""make_wheel.py PREFIX LIBDIR FOLDER - of what is installed in PREFIX (libraries in LIBDIR), the module pk with its library as a
wheel for Python in FOLDER. Tagged for the machine's kind alone: where it is installed, the C library is as new as here."""

import os
import re
import sys
import sysconfig

try:
    from wheel.wheelfile import WheelFile
except ImportError:
    sys.exit("make_wheel.py: Python's wheel is not installed (Debian: python3-wheel)")

MODULES = ("pk.py", "pk_c.py", "pk_goodput.py", "pk_request.py", "pk_span.py")
METADATA = """Metadata-Version: 2.1
Name: perfkit
Version: {version}
Summary: Where the time of training engines and solvers goes: regions, steps, counters, traces
License-File: LICENSE
Requires-Python: >=3.8
"""
WHEEL = """Wheel-Version: 1.0
Generator: perfkit
Root-Is-Purelib: false
Tag: {tag}
"""


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: make_wheel.py PREFIX LIBDIR FOLDER")
    prefix, libdir, folder = sys.argv[1:]
    libraries = os.path.join(prefix, libdir)
    with open(os.path.join(libraries, "pkgconfig/pk.pc"), encoding="utf-8") as file:
        version = re.search(r"^Version: (.*)$", file.read(), re.M)[1]
    tag = "py3-none-" + re.sub(r"\W", "_", sysconfig.get_platform())
    information = f"perfkit-{version}.dist-info"
    os.makedirs(folder, exist_ok=True)
    with WheelFile(os.path.join(folder, f"perfkit-{version}-{tag}.whl"), "w") as wheel:
        for name in MODULES:
            wheel.write(os.path.join(prefix, "share/perfkit/python", name), name)
        wheel.write(os.path.realpath(os.path.join(libraries, "libpk.so")), "perfkit.libs/libpk.so.1")
        wheel.write(os.path.join(prefix, "share/licenses/perfkit/LICENSE"), information + "/LICENSE")
        wheel.writestr(information + "/METADATA", METADATA.format(version=version))
        wheel.writestr(information + "/WHEEL", WHEEL.format(tag=tag))
        print(wheel.filename)


try:
    main()
except OSError as error:
    sys.exit(f"make_wheel.py: {error}")

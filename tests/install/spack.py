"""spack.py ROOT - the recipe for Spack, in every combination of its variants: what it passes to meson is an option there, of
that type, and no name is asked of a package that it does not depend on. Spack itself is in no package of Debian's."""

import itertools
import os
import re
import sys
import types

ROOT = sys.argv[1]
OPTIONS = dict(re.findall(r"^option\('(\w+)', type: '(\w+)'", open(os.path.join(ROOT, "meson_options.txt"), encoding="utf-8").read(),
                          re.MULTILINE))
VALUES = {"boolean": r"true|false", "feature": r"enabled|disabled", "string": r".+"}
variants, depends = {}, []


def variant(name, default, description, when=""):
    assert isinstance(default, bool) and description, name
    variants[name] = when


def depends_on(spec, type=("build", "link"), when=""):  # noqa: A002
    depends.append((re.match(r"[\w-]+", spec)[0], when))


class Package:
    """A package of Spack's, of which any path may be asked."""

    mpicc = "/mpi/bin/mpicc"
    prefix = types.SimpleNamespace(include="/cuda/include")


class Spec:
    def __init__(self, chosen):
        self.chosen = chosen

    def satisfies(self, wanted):
        assert re.fullmatch(r"\+\w+", wanted) and wanted[1:] in variants, wanted
        return wanted[1:] in self.chosen

    def __getitem__(self, name):
        assert any(name == package and (not when or self.satisfies(when)) for package, when in depends), name
        return Package()


def recipe():
    """As Spack runs it, with what that gives to a recipe."""
    given = types.ModuleType("spack.package")
    given.MesonPackage, given.variant, given.depends_on = type("MesonPackage", (), {}), variant, depends_on
    given.version = lambda name, branch: None
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": given})
    path = os.path.join(ROOT, "package/spack/packages/perfkit/package.py")
    names = {"__file__": path}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), names)  # noqa: S102
    assert names["CHECKOUT"] == os.path.realpath(ROOT), names["CHECKOUT"]
    return names["Perfkit"]


def check(argument):
    name, value = re.fullmatch(r"-D(\w+)=(.*)", argument).groups()
    assert name in OPTIONS, argument
    assert re.fullmatch(VALUES[OPTIONS[name]], value), argument
    return name


def main():
    made, count = recipe()(), 0
    for n in range(len(variants) + 1):
        for chosen in itertools.combinations(variants, n):
            if any(variants[name] and variants[name][1:] not in chosen for name in chosen):
                continue
            made.spec = Spec(chosen)
            names = [check(argument) for argument in made.meson_args()]
            assert len(set(names)) == len(names), names
            count += 1
    print(f"{count} combinations of {', '.join(variants)}")


main()

"""The recipe for Spack, of the checkout that it lies in (docs/install.md)."""

import os

from spack.package import *

try:  # Spack 1
    from spack_repo.builtin.build_systems.meson import MesonPackage
except ImportError:
    pass

CHECKOUT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../.."))


class Perfkit(MesonPackage):
    """Where the time goes in native ML and HPC programs: regions, steps, GPUs, NCCL, MPI and benchmarks, with the
    reason of a slow step, the rank that is late, and traces for Perfetto."""

    homepage = "file://" + CHECKOUT
    git = "file://" + CHECKOUT

    version("main", branch="main")

    variant("mpi", default=True, description="libpk_mpi, for the MPI it is built with")
    variant("cuda", default=False, description="GPUs by CUDA's driver, CUPTI and NVTX, and NCCL")
    variant("tools", default=True, description="the pk command")
    variant("query", default=True, description="pk query", when="+tools")
    variant("functions", default=True, description="functions that slow steps spent time in, by elfutils", when="+tools")

    depends_on("c", type="build", when="@main")
    depends_on("meson@1:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("zlib-api")
    depends_on("jansson@2.11:", when="+tools")
    depends_on("sqlite@3.38:", when="+query")
    depends_on("elfutils@0.180:", when="+functions")
    depends_on("mpi", when="+mpi")
    depends_on("cuda", type="build", when="+cuda")

    def meson_args(self):
        def feature(name, wanted):
            return f"-D{name}={'enabled' if wanted else 'disabled'}"

        has = self.spec.satisfies
        args = ["-Dtests=false", "-Dexamples=false", "-Dbench=false", "-Dhtml=disabled", f"-Dtools={str(has('+tools')).lower()}",
                feature("zlib", True), feature("sqlite", has("+query")), feature("libdw", has("+functions")),
                feature("mpi", has("+mpi"))]
        args += [feature(backend, has("+cuda")) for backend in ("cuda", "cupti", "nvtx", "nccl")]
        if has("+mpi"):
            args.append(f"-Dmpicc={self.spec['mpi'].mpicc}")
        if has("+cuda"):
            args.append(f"-Dinclude_cuda={self.spec['cuda'].prefix.include}")
        return args

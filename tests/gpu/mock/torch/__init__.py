"""A mock of as much of PyTorch as tests/gpu/profiler.py and preload.py use, on the mocks of the driver, of CUPTI and of NCCL:
operations are kernels of it, profiler.profile takes CUPTI as Kineto does, distributed calls NCCL by its global names, as a
program does that is linked with it."""

import ctypes
import os

from . import _device as device_
from . import distributed, profiler

__version__ = "mock"


class cuda:
    is_available = staticmethod(lambda: device_.count() > 0)
    device_count = staticmethod(device_.count)
    set_device = staticmethod(device_.use)
    synchronize = staticmethod(device_.synchronize)


class Tensor:
    """One number for all of it; each operation is a kernel."""

    def __init__(self, value):
        self.value = value
        device_.launch("elementwise")

    def __matmul__(self, other):
        return Tensor(self.value * other.value % 1000)

    def __truediv__(self, other):
        return Tensor(self.value / (other.value if isinstance(other, Tensor) else other))

    def __mul__(self, factor):
        return Tensor(self.value * factor)

    def norm(self):
        return Tensor(1.0)

    def sum(self):
        return self

    def item(self):
        return self.value


def randn(*shape, device):
    return Tensor(2.0)


def ones(count, device):
    return Tensor(1.0)

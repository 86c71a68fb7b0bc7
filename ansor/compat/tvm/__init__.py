"""TVM's API on top of ansor: a script that tunes and runs on the CPU works after changing its imports.

    from ansor.compat import tvm
    from ansor.compat.tvm import auto_scheduler, te

A name without a counterpart raises an AttributeError that says what to use instead. See docs/tvm.md.
"""

from ansor.compat.tvm import auto_scheduler as auto_scheduler
from ansor.compat.tvm import autotvm as autotvm
from ansor.compat.tvm import contrib as contrib
from ansor.compat.tvm import error as error
from ansor.compat.tvm import nd as nd
from ansor.compat.tvm import runtime as runtime
from ansor.compat.tvm import support as support
from ansor.compat.tvm import target as target
from ansor.compat.tvm import te as te
from ansor.compat.tvm import testing as testing
from ansor.compat.tvm import tir as tir
from ansor.compat.tvm import topi as topi
from ansor.compat.tvm import transform as transform
from ansor.compat.tvm.building import build as build
from ansor.compat.tvm.building import lower as lower
from ansor.compat.tvm.device import Device as Device
from ansor.compat.tvm.device import cpu as cpu
from ansor.compat.tvm.device import cuda as cuda
from ansor.compat.tvm.device import device as device
from ansor.compat.tvm.device import ext_dev as ext_dev
from ansor.compat.tvm.device import metal as metal
from ansor.compat.tvm.device import opencl as opencl
from ansor.compat.tvm.device import rocm as rocm
from ansor.compat.tvm.device import vulkan as vulkan
from ansor.compat.tvm.error import TVMError as TVMError
from ansor.compat.tvm.error import __version__ as __version__
from ansor.compat.tvm.missing import of_tvm as __getattr__  # noqa: F401  # missing names raise
from ansor.compat.tvm.modules import put as _put  # noqa: F401  # modules by TVM's paths

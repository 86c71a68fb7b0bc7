"""`tvm.topi`: operators under TVM's names, with TVM's argument names and order. Our own are in `ansor.te.nn`."""

from ansor.compat.tvm.topi import generic as generic
from ansor.compat.tvm.topi import nn as nn
from ansor.compat.tvm.topi import tag as tag
from ansor.compat.tvm.topi import transform as transform
from ansor.compat.tvm.topi import utils as utils
from ansor.compat.tvm.topi import x86 as x86
from ansor.compat.tvm.topi.names import IN_TOPI as __all__  # noqa: F401
from ansor.compat.tvm.topi.names import listed_in_topi as __dir__  # noqa: F401
from ansor.compat.tvm.topi.operators import of_topi as __getattr__  # noqa: F401  # our operators
from ansor.compat.tvm.topi.transform import cast as cast
from ansor.compat.tvm.topi.transform import clip as clip
from ansor.compat.tvm.topi.transform import identity as identity
from ansor.compat.tvm.topi.transform import round as round
from ansor.compat.tvm.topi.transform import strided_slice as strided_slice
from ansor.compat.tvm.topi.transform import take as take
from ansor.compat.tvm.topi.utils import get_const_int as get_const_int
from ansor.compat.tvm.topi.utils import get_const_tuple as get_const_tuple

"""`tvm.topi.nn`: our operators under TVM's names, with TVM's argument order."""

from ansor.compat.tvm.topi.names import IN_NN as __all__  # noqa: F401
from ansor.compat.tvm.topi.names import listed_in_nn as __dir__  # noqa: F401
from ansor.compat.tvm.topi.nn import utils as utils
from ansor.compat.tvm.topi.nn.operators import batch_matmul as batch_matmul
from ansor.compat.tvm.topi.nn.operators import batch_norm as batch_norm
from ansor.compat.tvm.topi.nn.operators import conv2d as conv2d
from ansor.compat.tvm.topi.nn.operators import matmul as matmul
from ansor.compat.tvm.topi.nn.utils import get_pad_tuple as get_pad_tuple
from ansor.compat.tvm.topi.nn.utils import get_pad_tuple1d as get_pad_tuple1d
from ansor.compat.tvm.topi.nn.utils import get_pad_tuple3d as get_pad_tuple3d
from ansor.compat.tvm.topi.operators import of_nn as __getattr__  # noqa: F401  # all others
from ansor.compat.tvm.topi.winograd import winograd_transform_matrices as winograd_transform_matrices

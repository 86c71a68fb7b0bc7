"""`tvm.contrib`: `utils`."""

from ansor.compat.tvm.contrib import utils as utils
from ansor.compat.tvm.missing import of_contrib as __getattr__  # noqa: F401  # what is not here raises

"""`tvm.topi.reduction`: our reductions."""

from ansor.compat.tvm.topi.fallback import of_topi as __getattr__  # noqa: F401  # all of them

"""`tvm.error`: what is caught, and the version of TVM whose names these are."""

from ansor.errors import AnsorError

__version__ = "0.9.0"

TVMError = AnsorError
OpError = AnsorError
InternalError = AnsorError

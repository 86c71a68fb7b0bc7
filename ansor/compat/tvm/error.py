"""`tvm.error`: exceptions for scripts to catch, and the version of TVM that this API follows."""

from ansor.errors import AnsorError

__version__ = "0.9.0"

TVMError = AnsorError
OpError = AnsorError
InternalError = AnsorError

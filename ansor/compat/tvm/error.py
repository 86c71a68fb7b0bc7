"""`tvm.error`: what is caught."""

from ansor.errors import AnsorError

TVMError = AnsorError

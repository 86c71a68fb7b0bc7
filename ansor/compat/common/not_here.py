"""Errors for parts of TVM that we lack: their messages name what to use instead."""

from ansor.errors import AnsorError


class MissingNameError(AnsorError, AttributeError):
    """A name of TVM's that is not here. Cure: what the message names."""


class MissingModuleError(AnsorError, ImportError):
    """A module of TVM's that is not here. Cure: what the message names."""

"""Errors for parts of TVM that do not exist here: their messages say what to use instead."""

from ansor.errors import AnsorError


class MissingNameError(AnsorError, AttributeError):
    """A name of TVM's that is not here. Cure: use what the message names."""


class MissingModuleError(AnsorError, ImportError):
    """A module of TVM's that is not here. Cure: use what the message names."""

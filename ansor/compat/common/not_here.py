"""Errors for parts of TVM that do not exist here: their messages say what to use instead."""

from ansor.errors import AnsorError


class MissingNameError(AnsorError, AttributeError):
    """A name of TVM that does not exist here. Cure: use what the message names."""


class MissingModuleError(AnsorError, ImportError):
    """A module of TVM that does not exist here. Cure: use what the message names."""

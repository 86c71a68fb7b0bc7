"""A warning names the line of the caller, however deep in the package it was given."""

from __future__ import annotations

import warnings

import pytest

from ansor.errors import AnsorError, AnsorWarning
from ansor.support.notices import warn


def test_a_warning_names_the_caller() -> None:
    with pytest.warns(AnsorWarning, match="half as fast") as caught:
        warn("half as fast")
    assert caught[0].filename == __file__


def test_a_warning_from_within_the_package_names_the_caller_of_the_package() -> None:
    inside: dict[str, object] = {"__name__": "ansor.somewhere", "warn": warn}
    exec(compile("def f(): warn('deep')\ndef g(): f()", "somewhere.py", "exec"), inside)
    g = inside["g"]
    assert callable(g)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        g()
    assert [one.filename for one in caught] == [__file__]


def test_errors_of_ours_are_runtime_errors_as_those_of_tvm_are() -> None:
    assert issubclass(AnsorError, RuntimeError)

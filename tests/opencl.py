"""An OpenCL device for tests: PoCL, installed if there is none and this machine permits it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from ansor.vta.runtime.opencl import OpenclDriver
from tests.debian import install


@cache
def _lacking() -> str:
    """Why there is no device after an attempt to install one; '' if there is one. The loader looks for drivers only once, so they have to be there before."""
    named = any(name.startswith(("OCL_ICD_", "OPENCL_")) for name in os.environ)
    if not named and not any(Path("/etc/OpenCL/vendors").glob("*.icd")):
        install("pocl-opencl-icd")
    try:
        OpenclDriver(dram_bytes=4096)
    except Exception as error:  # a driver may raise anything
        return f"no OpenCL device: {error}"
    return ""


def need_opencl() -> None:
    """Skip a test if there is no device; fail it in CI."""
    if said := _lacking():
        if os.environ.get("CI") == "true":
            pytest.fail(said)
        pytest.skip(said)

"""An OpenCL device for tests: PoCL, installed where there is none, and this machine lets us."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from ansor.vta.runtime.opencl import OpenclDriver
from tests.debian import install


@cache
def _lacking() -> str:
    """Why there is no device after an attempt to install one; '' where there is one. The loader looks for drivers once: they have to be there before."""
    named = any(name.startswith(("OCL_ICD_", "OPENCL_")) for name in os.environ)
    if not named and not any(Path("/etc/OpenCL/vendors").glob("*.icd")):
        install("pocl-opencl-icd")
    try:
        OpenclDriver(dram_bytes=4096)
    except Exception as error:  # whatever a driver of somebody else does
        return f"no OpenCL device: {error}"
    return ""


def need_opencl() -> None:
    """Skips a test where there is no device; fails where everything is tested."""
    if said := _lacking():
        if os.environ.get("CI") == "true":
            pytest.fail(said)
        pytest.skip(said)

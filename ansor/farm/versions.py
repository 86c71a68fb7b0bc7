"""The versions that have to agree on all machines of a farm, and the error if they do not.

Functions are sent by name, so Python versions may differ as long as the older one can read the pickles of the newer one.
"""

from __future__ import annotations

import pickle
import platform
from collections.abc import Mapping
from typing import Any

import ansor
from ansor.farm.codec import VERSION

_NAMES = {"version": "ansor", "codec": "ansor's jobs", "distributed": "distributed", "pickle": "Python's pickles"}


def versions() -> dict[str, Any]:
    """The versions of this process."""
    import distributed

    return {
        "version": ansor.__version__, "codec": VERSION, "distributed": distributed.__version__, "pickle": pickle.HIGHEST_PROTOCOL,
        "python": platform.python_version(),
    }  # fmt: skip


def difference(said: Mapping[str, Any]) -> str:
    """How the versions of another process differ from those here, in words; '' if they do not."""
    here = versions()
    wrong = [name for name in _NAMES if said.get(name) != here[name]]
    there = ", ".join(f"{_NAMES[name]} {_text(said, name)}" for name in wrong)
    return f"{there}; here is {', '.join(f'{_NAMES[name]} {_text(here, name)}' for name in wrong)}: install the same version on all machines" if wrong else ""


def scheduler_difference(said: Mapping[str, Any]) -> str:
    """`difference` for the versions that Dask's scheduler reports, which do not include ansor's."""
    return difference(versions() | {"distributed": dict(said.get("packages") or {}).get("distributed")})


def _text(of: Mapping[str, Any], name: str) -> str:
    value = of.get(name)
    python = f" (Python {of.get('python')})" if name == "pickle" else ""
    return f"{'of an unknown version' if value is None else value}{python}"

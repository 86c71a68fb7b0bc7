"""PyTorch if the process has imported it. Nothing here imports it."""

from __future__ import annotations

import sys
from types import ModuleType

NEEDED = ("Tensor", "is_grad_enabled", "__file__")


def loaded_torch() -> ModuleType | None:
    """PyTorch if it was imported. None while another thread imports it, or if something replaces it (such as None, which forbids imports)."""
    torch = sys.modules.get("torch")
    return torch if all(hasattr(torch, name) for name in NEEDED) else None

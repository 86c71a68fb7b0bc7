"""Functions of TVM's core that its own scripts and tests reach for: questions on states, and tasks as text. Source: TVM 0.9, `search_policy/utils.cc`."""

from __future__ import annotations

from ansor.compat.tvm.missing import of_auto_scheduler as __getattr__  # noqa: F401  # what is not here raises

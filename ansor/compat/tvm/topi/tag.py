"""`tvm.topi.tag`: queries on an operation's tag. Our elementwise operators set "elemwise" or "broadcast"; other operations have no tag."""

from __future__ import annotations

ELEMWISE, BROADCAST, INJECTIVE = "elemwise", "broadcast", "injective"


def is_broadcast(tag: str) -> bool:
    """Whether an operation reads its operands elementwise, with or without broadcasting."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((f"{ELEMWISE},", f"{BROADCAST},"))


def is_injective(tag: str) -> bool:
    """Whether each element of an operation depends on one element of each operand."""
    return is_broadcast(tag) or tag == INJECTIVE or tag.startswith(f"{INJECTIVE},")

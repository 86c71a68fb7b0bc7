"""`tvm.topi.tag`: what a tag of an operation says. Ours are "elemwise" and "broadcast" where an operator made a tensor of tensors; others have none."""

from __future__ import annotations

ELEMWISE, BROADCAST, INJECTIVE = "elemwise", "broadcast", "injective"


def is_broadcast(tag: str) -> bool:
    """Whether an operation reads its operands element by element, perhaps repeated."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((f"{ELEMWISE},", f"{BROADCAST},"))


def is_injective(tag: str) -> bool:
    """Whether every element of an operation is made of one element of each operand."""
    return is_broadcast(tag) or tag == INJECTIVE or tag.startswith(f"{INJECTIVE},")

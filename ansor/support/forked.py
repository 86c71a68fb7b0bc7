"""Locks after a fork. Only the thread that forked continues in the child, so a lock that another thread held would never be released there."""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """An object with a lock. In a forked child, it gets a new, free lock. forked: this process is a child, and the object was made in its parent.

    The lock is reentrant: otherwise finalizers and signal handlers, which run between any two steps of the thread that holds it, would wait forever.
    """

    def __init__(self) -> None:
        self.forked = False
        self.lock = threading.RLock()
        _owners.add(self)

    def after_fork(self) -> None:
        """Renew whatever else the object needs in a forked child; called there."""


_owners: weakref.WeakSet[Locked] = weakref.WeakSet()


def _renew() -> None:
    for owner in list(_owners):
        owner.lock, owner.forked = threading.RLock(), True
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

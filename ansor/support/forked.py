"""Locks after a fork. Only the thread that forked continues in the child: a lock that another thread held would never be released there."""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """An object with a lock, which is a new, free one in a forked child. `forked`: this is a child, and the object was made in its parent.

    The lock is reentrant: otherwise finalizers and signal handlers, which run between any two steps of the thread that holds it, would wait for ever.
    """

    def __init__(self) -> None:
        self.forked = False
        self.lock = threading.RLock()
        _owners.add(self)

    def after_fork(self) -> None:
        """Renew whatever else a forked child needs; called there."""


_owners: weakref.WeakSet[Locked] = weakref.WeakSet()


def _renew() -> None:
    for owner in list(_owners):
        owner.lock, owner.forked = threading.RLock(), True
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

"""Locks after a fork. Only the thread that forked lives on in the child: a lock that another one held would never be given back there."""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """Has a lock, which is a new and free one in a forked child. `forked`: this is a child, and it was made in a parent.

    A thread that has the lock gets it again: what runs between any two steps of its own (finalizers, handlers of signals) would wait for ever.
    """

    def __init__(self) -> None:
        self.forked = False
        self.lock = threading.RLock()
        _owners.add(self)

    def after_fork(self) -> None:
        """What else has to be made anew in a forked child; it is called there."""


_owners: weakref.WeakSet[Locked] = weakref.WeakSet()


def _renew() -> None:
    for owner in list(_owners):
        owner.lock, owner.forked = threading.RLock(), True
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

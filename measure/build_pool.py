"""Threads that call compilers, by default one for each core, for one builder or shared by several."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from ansor.support import settings
from ansor.support.closing import Closing

P = ParamSpec("P")
T = TypeVar("T")


class BuildPool(Closing):
    """Runs calls in the order in which they were submitted. Use it in a `with` statement, or call `close`.

    jobs: calls at a time; by default one for each core.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or settings.jobs()
        self._threads = ThreadPoolExecutor(self.jobs, thread_name_prefix="ansor-build")
        self._under_way = set[Future[Any]]()

    def submit(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """The future of the call's result."""
        future = self._threads.submit(call, *args, **kwargs)
        self._under_way = {one for one in [*self._under_way, future] if not one.done()}
        return future

    @property
    def has_free_job(self) -> bool:
        """Whether another call can start at once."""
        self._under_way = {one for one in self._under_way if not one.done()}
        return len(self._under_way) < self.jobs

    def close(self) -> None:
        """Drop calls that have not begun, and wait for the others."""
        self._threads.shutdown(cancel_futures=True)

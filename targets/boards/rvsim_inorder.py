"""A small core for rvsim, which reads this file: one instruction at a time, in order, with 8 KiB each of instruction and data cache."""

from __future__ import annotations

from rvsim import Backend, Cache, Config

config = Config(
    width=1,
    backend=Backend.InOrder(),
    l1i=Cache(size="8KB", line="64B", ways=2, latency=1),
    l1d=Cache(size="8KB", line="64B", ways=2, latency=1),
    l2=None,
)

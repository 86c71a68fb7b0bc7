"""`ansor doctor`."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from contextlib import closing

from rich.console import Console

from ansor import __version__
from ansor.codegen.toolchain import find_compiler, prepare, processor_name
from ansor.commands.board_check import say_check
from ansor.commands.common import make_console, target_of
from ansor.commands.learn import run_learn
from ansor.commands.targets import say_device
from ansor.cost_model.pretrained import knows
from ansor.errors import AnsorError
from ansor.measure.devices.local import LocalDevice
from ansor.measure.peak import measure_peak
from ansor.run.machine_model import machine_model
from ansor.run.progress_text import BUSY
from ansor.support.settings import cache_directory, cores, writable_cache
from ansor.support.text import format_seconds
from ansor.targets.base import Target, find_kind


def run_doctor(given: argparse.Namespace) -> int:
    """Print what this machine has and can do, or fit the cost model to it; 1 when something needed is missing."""
    load = os.getloadavg()[0]  # before our own work adds to it
    console = make_console()
    if given.learn is not None:
        return run_learn(given, console)
    target = target_of(given)
    console.print(f"ansor {__version__} on {processor_name()}, {cores()} cores")
    console.print(f"target     {target}: {_hardware(target)}", soft_wrap=True)
    cache, written = cache_directory(), writable_cache()
    elsewhere = "" if written == cache else f" (read-only; what it lacks is kept in {written})"
    console.print(f"cache      {cache}{elsewhere}", soft_wrap=True)
    console.print(f"cost model {_cost_model(target)}", soft_wrap=True)
    try:
        if not target.is_local:
            return 0 if _elsewhere(target, console) else 1
        _measured(target, console, load)
    except AnsorError as error:
        console.print(f"compiler   broken: {error}", soft_wrap=True)
        return 1
    return 0


def _hardware(target: Target) -> str:
    words = find_kind(target.kind).meaning.words
    if words is not None:
        return words(target)
    caches = ", ".join(f"L{level} {size >> 10} KiB" for level, size in enumerate(target.caches.sizes, 1))
    return f"vectors of {target.vector_bytes} bytes, {target.vector_registers} registers, {caches}"


def _cost_model(target: Target) -> str:
    if not knows(target.prior.family, target.unit.name):
        first = f"the estimate, as no model knows {target.kind}"
    else:
        own = machine_model(target)
        first = "networks of the package" if own is None else f"networks fitted to this machine ({own.digest}), with {own.about.get('programs')} programs"
    try:
        importlib.import_module("lightgbm")
    except (ImportError, OSError) as error:
        return f"{first}; what learns anew does not load LightGBM: {error}"
    return f"{first}; LightGBM for what learns anew"


def _elsewhere(target: Target, console: Console) -> bool:
    """Whether a target that is measured on another device can be built for and run."""
    toolchain, start = target.toolchain(), time.monotonic()
    for form in toolchain.forms():
        toolchain.prepare(form)
    console.print(f"toolchain  {toolchain.version} (ready in {format_seconds(time.monotonic() - start)})", soft_wrap=True)
    return say_device(console, target) and say_check(console, target)


def _measured(target: Target, console: Console, load: float) -> None:
    compiler = find_compiler(target.compiler)
    start = time.monotonic()
    prepare(compiler, target.mcpu)
    console.print(f"compiler   {compiler.version} (ready in {format_seconds(time.monotonic() - start)})", soft_wrap=True)
    with closing(LocalDevice()) as device:
        console.print(f"timer      {100 * device.noise_floor():.1f} % spread of a fixed kernel; smaller differences mean nothing")
    for threads in dict.fromkeys((1, target.threads)):
        peak = measure_peak(compiler, vector_bytes=target.vector_bytes, threads=threads, mcpu=target.mcpu)
        word = "thread " if threads == 1 else "threads"
        console.print(f"peak       {threads} {word}: {peak.gflops:.0f} GFLOP/s (fp32), {peak.gbytes:.0f} GB/s read{_busy(threads, load)}", soft_wrap=True)


def _busy(threads: int, load: float) -> str:
    """What is said of a peak where other work kept cores from so many threads. `load`: of the machine, before we added to it."""
    return f" ({BUSY}: load {load:.1f})" if load + threads > cores() + 0.5 else ""

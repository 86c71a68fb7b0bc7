"""`ansor doctor`."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Iterator
from contextlib import closing

from ansor import __version__
from ansor.codegen.toolchain import find_compiler, prepare, processor_name
from ansor.commands.as_json import say_json
from ansor.commands.board_check import check_board
from ansor.commands.common import make_console, target_of
from ansor.commands.findings import Finding, told
from ansor.commands.learn import run_learn
from ansor.commands.targets import check_device
from ansor.cost_model.pretrained import knows
from ansor.errors import AnsorError, ArgumentError
from ansor.measure.devices.local import LocalDevice
from ansor.measure.peak import measure_peak
from ansor.run.machine_checks import check_machine
from ansor.run.machine_model import is_fittable, machine_model
from ansor.run.progress_text import BUSY
from ansor.support.settings import cache_directory, cores, writable_cache
from ansor.support.text import format_seconds
from ansor.targets.base import Target, find_kind

NOISY = 0.05
"""Spread of a fixed kernel above which the machine is too noisy to tell programs apart."""


def run_doctor(given: argparse.Namespace) -> int:
    """Print what this machine has and can do, or fit the cost model to it. Returns 1 if something required is missing."""
    load = os.getloadavg()[0]  # before our own work adds to it
    console = make_console()
    if given.learn is not None:
        if given.json:
            raise ArgumentError("asked for --json with --learn, which prints its progress; leave one of them out")
        return run_learn(given, console)
    target = target_of(given)
    check_machine(target, measures=True)
    found = []
    if not given.json:
        console.print(f"ansor {__version__} on {processor_name()}, {cores()} cores")
    for finding in _findings(target, load):
        found.append(finding)
        if not given.json:
            console.print(str(finding), soft_wrap=True, markup=False)
    if given.json:
        say_json(console, {"version": __version__, "processor": processor_name(), "cores": cores(), "target": str(target), "findings": found})
    return 0 if all(one.fine for one in found) else 1


def _findings(target: Target, load: float) -> Iterator[Finding]:
    """Yield findings one at a time, as measuring takes a while."""
    yield Finding("target", f"{target}: {_hardware(target)}")
    yield _cache()
    yield _cost_model(target)
    try:
        yield from _measured(target, load) if target.is_local else _elsewhere(target)
    except AnsorError as error:
        yield told("compiler", str(error), "broken: ", fix="set CC, or pass --cc, to a working C compiler, or reinstall the ziglang wheel")


def _cache() -> Finding:
    cache, written = cache_directory(), writable_cache()
    if written == cache:
        return Finding("cache", str(cache))
    return Finding("cache", f"{cache} (read-only; missing files are kept in {written})", "set ANSOR_CACHE to a permanent, writable folder")


def _hardware(target: Target) -> str:
    words = find_kind(target.kind).meaning.words
    if words is not None:
        return words(target)
    caches = ", ".join(f"L{level} {f'{size >> 10} KiB' if size >= 1024 else f'{size} bytes'}" for level, size in enumerate(target.caches.sizes, 1))
    return f"vectors of {target.vector_bytes} bytes, {target.vector_registers} registers, {caches}"


def _cost_model(target: Target) -> Finding:
    fix = ""
    if not knows(target.prior.family, target.unit.name):
        first = f"the estimate, as there is no model for {target.kind}"
        fix = "tuning corrects it with measurements"
    else:
        own = machine_model(target)
        first = "networks of the package" if own is None else f"networks fitted to this machine ({own.digest}), with {own.about.get('programs')} programs"
        if own is None and is_fittable(target):
            fix = "`ansor doctor --learn 20` fits them to this machine"
    try:
        importlib.import_module("lightgbm")
    except (ImportError, OSError) as error:
        fix = "install lightgbm, and the OpenMP library that it needs (libgomp1 in Debian and Ubuntu)"
        return Finding("cost model", f"{first}; new models cannot load LightGBM: {error}", fix)
    return Finding("cost model", f"{first}; LightGBM for new models", fix)


def _elsewhere(target: Target) -> Iterator[Finding]:
    """Check that programs can be built and run for a target that is measured on another device."""
    toolchain, start = target.toolchain(), time.monotonic()
    for form in toolchain.forms():
        toolchain.prepare(form)
    yield Finding("toolchain", f"{toolchain.version} (ready in {format_seconds(time.monotonic() - start)})")
    device = check_device(target)
    yield device
    check = check_board(target) if device.fine else None
    if check is not None:
        yield check


def _measured(target: Target, load: float) -> Iterator[Finding]:
    compiler = find_compiler(target.compiler)
    start = time.monotonic()
    prepare(compiler, target.mcpu)
    yield Finding("compiler", f"{compiler.version} (ready in {format_seconds(time.monotonic() - start)})")
    with closing(LocalDevice()) as device:
        spread = device.noise_floor()
    restless = "stop other work and fix the clock rate before you tune" if spread > NOISY else ""
    yield Finding("timer", f"{100 * spread:.1f} % spread of a fixed kernel; smaller differences are meaningless", restless)
    for threads in dict.fromkeys((1, target.threads)):
        peak = measure_peak(compiler, vector_bytes=target.vector_bytes, threads=threads, mcpu=target.mcpu)
        word, busy = "thread " if threads == 1 else "threads", _busy(threads, load)
        text = f"{threads} {word}: {peak.gflops:.0f} GFLOP/s (fp32), {peak.gbytes:.0f} GB/s read{busy}"
        yield Finding("peak", text, "run it again on an idle machine" if busy else "")


def _busy(threads: int, load: float) -> str:
    """A note for a peak that was measured while other work occupied cores. load: of the machine, before we added to it."""
    return f" ({BUSY}: load {load:.1f})" if load + threads > cores() + 0.5 else ""

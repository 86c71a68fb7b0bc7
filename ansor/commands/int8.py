"""`ansor compile` and `ansor tune` for int8 networks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from ansor import api
from ansor.commands.common import check_folder, doing, target_of
from ansor.commands.subject import NetworkSubject, resolve
from ansor.errors import ArgumentError, DeclarationError
from ansor.integer.board_run import run_firmware, wire_of
from ansor.integer.firmware import board_of, build_firmware
from ansor.integer.program import IntegerProgram
from ansor.integer.reading import exported
from ansor.integer.table import profile_text
from ansor.ir.dag import c_identifier
from ansor.onnx.model_file import is_float
from ansor.run.keywords import NetworkKeywords
from ansor.run.progress import ProgressView, say
from ansor.support.loaded import torch_needed
from ansor.support.text import with_article


def is_int8(given: argparse.Namespace) -> bool:
    """Whether to compile the subject as an int8 network. Raises ArgumentError for options of one without one."""
    found = bool(given.int8) or given.subject.endswith(".pt2") or (given.subject.endswith(".onnx") and not is_float(given.subject))
    for option, value in (("--arena", given.arena), ("--run", given.selftest), ("--on", given.on)):
        if value and not found:
            asked = option if value is True else f"{option} {value}"
            raise ArgumentError(f"asked for {asked} for {given.subject}, which is not an int8 network: add --int8, or leave {option} out")
    return found


def run_int8(given: argparse.Namespace, console: Console, tuning: NetworkKeywords, *, reads: bool = False) -> int:
    """Read the network, tune or choose its kernels, print what each layer needs, save it, and run its self-test. Returns 1 if that fails.

    tuning: how long, and with which model; reads: only read the records.
    """
    if given.on and not given.selftest:
        raise ArgumentError(f"asked for --on {given.on} without --run; add it, or leave --on out")
    if given.selftest and not given.output:
        raise ArgumentError("asked for --run without --output; name a folder to build the program in")
    with doing(console, f"reading {given.subject}"):
        model, calibration, name = _subject(given)
    check_folder(given.output)
    target = target_of(given) if given.target else None
    records = _records(given, name, reads=reads)
    asked: NetworkKeywords = {**tuning, "records": records, "progress": ProgressView(console), "report": partial(say, console)}
    made = api.compile_int8(model, calibration, target, name=name, arena_bytes=given.arena, **asked)
    console.print(made.table, markup=False, soft_wrap=True)
    if not given.output:
        return 0
    return _saved(made, given, console)


def _records(given: argparse.Namespace, name: str, reads: bool) -> Path | None:
    """The record file: the one given, else one named after the network; None if that does not exist and records are only read."""
    place = Path(given.records) if given.records else Path(f"{c_identifier(name)}.jsonl")
    return None if reads and not given.records and not place.exists() else place


def _saved(made: IntegerProgram, given: argparse.Namespace, console: Console) -> int:
    if made.target.is_local:
        made.save(given.output)
        console.print(f"saved in {given.output}; `sh {given.output}/build.sh test` builds and tests it")
        wrong = made.on_host.selftest() if given.selftest else 0
        return _say_test(wrong, "", console) if given.selftest else 0
    if made.target.dialect.hosted:
        made.save(given.output)
        console.print(f"saved in {given.output}; `sh {given.output}/build.sh` builds it")
        return 0
    wire = wire_of(board_of(made.code), given.on or "")
    firmware = build_firmware(made.code, given.output, behind_wire=bool(wire))
    console.print(str(firmware))
    if not given.selftest:
        return 0
    run = run_firmware(firmware, wire)
    console.print(profile_text(made.code, run.layers, run.unit, firmware.code_bytes), markup=False, soft_wrap=True)
    return _say_test(run.wrong, f"; one run: {run.cost:,.0f} {run.unit}, {run.stack_bytes} bytes of stack", console)


def _say_test(wrong: int, more: str, console: Console) -> int:
    console.print(f"self-test: {_verdict(wrong)}{more}")
    return 1 if wrong else 0


def _verdict(wrong: int) -> str:
    """wrong: what the self-test returns, 0 or the position of a byte from 1."""
    return f"failed at byte {wrong - 1} of the outputs, or after it if a long output starts there" if wrong else "passed, every byte is right"


def _subject(given: argparse.Namespace) -> tuple[object, Sequence[object], str]:
    """What `compile_int8` takes: a model, its calibration and a name."""
    if given.subject.endswith(".onnx"):
        return given.subject, (), Path(given.subject).stem
    if given.subject.endswith(".pt2"):
        return exported(Path(given.subject))
    subject = resolve(given.subject, given.args)
    if not isinstance(subject, NetworkSubject):
        raise DeclarationError(f"asked to compile {given.subject} with --int8, but it is an operator; name a network, or leave --int8 out")
    with torch_needed(subject.name):
        inputs = subject.calibration() if subject.calibration is not None else [subject.example_inputs()]
    if not isinstance(inputs, Sequence):
        raise DeclarationError(f"{subject.name}: calibration() returned {with_article(type(inputs).__name__)}; it has to return a list of inputs")
    return subject.model(), inputs, subject.name

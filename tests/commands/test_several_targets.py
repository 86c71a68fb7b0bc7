"""`ansor tune` with several `--target`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ansor.cli import _parser, main
from ansor.commands.several_targets import devices_of, targets_of
from ansor.errors import ArgumentError
from ansor.measure.record import load
from ansor.targets.base import parse_target

A, B = "micro -board=mps2-an386", "micro -board=qemu-riscv32"


def given(*options: str) -> argparse.Namespace:
    return _parser().parse_args(["tune", "matmul", *options])


def test_devices_are_for_the_target_before_them() -> None:
    both = given("--target", A, "--devices", "d, e", "--target", B, "--devices", "f")
    assert targets_of(both) == [parse_target(A), parse_target(B)]
    assert devices_of(both, targets_of(both)) == {parse_target(A): ["d", "e"], parse_target(B): ["f"]}
    apart = given("--target", A, "--devices", "d", "--devices", "e", "--target", B, "--devices", "f")
    assert devices_of(apart, targets_of(apart)) == devices_of(both, targets_of(both))
    own = given("--target", A, "--target", B, "--devices", "f")
    assert devices_of(own, targets_of(own)) == {parse_target(A): None, parse_target(B): ["f"]}


@pytest.mark.parametrize("options", [("--target", A, "--devices", "d"), ("--devices", "d", "--target", A)])
def test_the_place_of_devices_does_not_matter_for_a_single_target(options: tuple[str, ...]) -> None:
    found = given(*options)
    assert devices_of(found, targets_of(found)) == {parse_target(A): ["d"]}


def test_repeated_devices_of_a_single_target_add_up() -> None:
    found = given("--devices", "d,e", "--target", A, "--devices", "f")
    assert devices_of(found, targets_of(found)) == {parse_target(A): ["d", "e", "f"]}


def test_without_targets_there_is_one() -> None:
    found = given("--threads", "1")
    assert targets_of(found) == [parse_target("cpu -threads=1")] and devices_of(found, targets_of(found)) == {parse_target("cpu -threads=1"): None}


def test_devices_of_no_target() -> None:
    found = given("--devices", "d", "--target", A, "--target", B)
    with pytest.raises(ArgumentError, match="asked for --devices d before the first of several targets; write it after the --target that it is for"):
        devices_of(found, targets_of(found))


@pytest.mark.parametrize("again", [A, f"{A} -workspace=64"])
def test_a_target_twice(again: str) -> None:
    """A limit on workspaces does not make another one: its devices are the same."""
    with pytest.raises(ArgumentError, match=f"asked to tune for {A} twice; name each target once"):
        targets_of(given("--target", A, "--target", again))


@pytest.mark.parametrize(("subject", "what"), [("resnet18", "a network"), ("resnet8 --int8", "an int8 network")])
def test_networks_are_for_one_target(subject: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *subject.split(), "--target", A, "--target", B]) == 1
    said = f"asked to tune {subject.split()[0]} for {A} and {B} at once, but it is {what}; use a command for each target, or tune its tasks with"
    assert said in capsys.readouterr().err


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
def test_an_operator_is_tuned_for_two_boards(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "matmul", "--args", "8,8,8", "--target", A, "--target", B, "--devices", "qemu-system", "--trials", "5", "--output", "k"]) == 0
    out = capsys.readouterr().out
    assert f"matmul(8, 8, 8) for {A} and {B}; trials are kept in matmul.jsonl" in out
    rows = [line.split() for line in out.splitlines() if line.startswith("matmul(8, 8, 8)  ")]
    assert [" ".join(row[3:6]) for row in rows] == [f"{A} 1", f"{B} 1"] and [row[-1] for row in rows] == ["2", "3"]
    assert len(load("matmul.jsonl").records) == 5
    assert sorted(path.parent.parent.name for path in Path("k").glob("*/*/*.h")) == ["micro_board_mps2_an386", "micro_board_qemu_riscv32"]

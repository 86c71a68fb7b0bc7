"""`ansor tune` for several targets in one run: `--target A --devices D,E --target B --devices F`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ansor.commands.common import target_of
from ansor.errors import ArgumentError
from ansor.run.several_targets import name_of
from ansor.targets.base import Target


def targets_of(given: argparse.Namespace) -> list[Target]:
    """The targets that the options describe: one, or several different ones."""
    found = [target_of(given, text) for text in getattr(given, "targets", None) or [""]]
    names = [name_of(one) for one in found]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise ArgumentError(f"asked to tune for {twice} twice; name each target once")
    return found


def devices_of(given: argparse.Namespace, targets: Sequence[Target]) -> dict[Target, list[str] | None]:
    """The devices of each target; None for its own."""
    if len(targets) == 1:
        return {targets[0]: device_names(given)}
    by_text = getattr(given, "devices_of", None) or {}
    if None in by_text:
        raise ArgumentError(f"asked for --devices {by_text[None]} before the first of several targets; write it after the --target that it is for")
    return {target: _names(by_text[text]) if text in by_text else None for text, target in zip(given.targets, targets, strict=True)}


def device_names(given: argparse.Namespace) -> list[str] | None:
    """The devices of a single target; None for its own."""
    return None if given.devices is None else _names(given.devices)


def check_one(given: argparse.Namespace, what: str) -> None:
    """Raise ArgumentError if there are several targets. what: the kind of subject, which becomes one program for one target."""
    if len(getattr(given, "targets", None) or []) > 1:
        raise ArgumentError(
            f"asked to tune {given.subject} for {' and '.join(given.targets)} at once, but it is {what}; use a command for each target, or tune its tasks "
            "with ansor.tune_tasks (docs/boards.md)"
        )


def _names(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]

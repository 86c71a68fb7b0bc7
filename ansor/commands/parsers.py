"""What the parsers of all commands share."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TypeAlias

from ansor.support.text import parse_bytes

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The parser that commands are added to."""


class Parser(argparse.ArgumentParser):
    """Suggests the command, shell or other choice that a misspelt one may mean."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            close = get_close_matches(str(value), map(str, action.choices or ()), 1)
            raise argparse.ArgumentError(action, f"{error.message}; did you mean {close[0]}?") if close else error from None


class TargetOption(argparse.Action):
    """`--target`, which may be repeated: `target` is the last one, `targets` are all."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: str | Sequence[object] | None, option_string: str | None = None
    ) -> None:
        namespace.target, namespace.targets = values, [*(getattr(namespace, "targets", None) or []), values]


class DevicesOption(argparse.Action):
    """`--devices`: `devices` has all of them; `devices_of` has those after each `--target`, or before the first one (None). Repeated options add up."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: str | Sequence[object] | None, option_string: str | None = None
    ) -> None:
        before = getattr(namespace, "devices_of", None) or {}
        namespace.devices = _joined(namespace.devices, values)
        namespace.devices_of = {**before, namespace.target: _joined(before.get(namespace.target), values)}


def _joined(before: str | None, more: object) -> str:
    return str(more) if before is None else f"{before},{more}"


def command(commands: Commands, name: str, text: str) -> argparse.ArgumentParser:
    """The parser of a command; `ansor --help` shows the first line of its text."""
    return commands.add_parser(name, help=text.splitlines()[0], description=text, formatter_class=HelpText)


class HelpText(argparse.HelpFormatter):
    """Paragraphs as wide as the terminal; indented examples keep their lines, with the explanation on the line below if both are too wide."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join("\n".join(_filled(paragraph.splitlines(), width)) for paragraph in text.split("\n\n"))


def _filled(lines: list[str], width: int) -> list[str]:
    if not lines[0].startswith("  "):
        return textwrap.wrap(" ".join(lines), width)
    found = []
    for line in lines:
        example, _, said = line.strip().partition("  ")
        short = len(line) <= width
        found += [line] if short else textwrap.wrap(example, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        found += [] if short else textwrap.wrap(said.strip(), width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return found


def natural(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def size(text: str) -> int:
    """Bytes, at least 1: 65536, 64K, 1M."""
    value = parse_bytes(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes, such as 65536, 64K or 1M")
    return value


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def trials(text: str) -> int:
    """A whole number of at least 1; the error for 0 names the command that measures nothing."""
    if text.isdecimal() and int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} would measure nothing; `ansor compile` generates code without measuring")
    return positive(text)


def part(text: str) -> tuple[int, int]:
    """`1/2`."""
    first, slash, last = text.partition("/")
    if not slash or not first.isdecimal() or not last.isdecimal() or not 1 <= int(first) <= int(last):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 1/2")
    return int(first), int(last)


def rate(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def minutes(text: str) -> float:
    """A number of minutes, at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes, such as 5; 0 removes what was learned")
    return value


def percent(text: str) -> float:
    """A share of at least 0 and below 1, given in percent without the sign."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 100.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 to below 100")
    return value / 100


def arguments(text: str) -> tuple[int | str, ...]:
    """`512,512,512`, and words for operators that take some: `64,64,64,float32`."""
    found = tuple(int(part) if re.fullmatch(r"[+-]?\d+", part) else part for part in map(str.strip, text.split(",")))
    if not all(isinstance(part, int) or part.isidentifier() for part in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of sizes; write whole numbers or words with commas between them, such as 512,512,512")
    return found

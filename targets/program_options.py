"""Guards against options that name a program (`-cc`) in texts of targets from files.

A target on the command line or in a script may name a compiler, which is started. A target in a file may not: files are shared. Every reader
of targets in files calls `why_refused` or `read_target`, and writers omit such options by `without_programs`, so that their output can be
read again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from functools import lru_cache

from ansor.errors import TargetError
from ansor.targets.base import Target, find_kind, known_kinds, parse_target

LONGEST = 4096
"""The most characters of a target read from a file."""

DEEPEST = 4
"""The most nested texts (the host in a target, a JSON object) to check; legitimate targets have no more."""

_TOO_DEEP = "is nested too deeply to be checked"


def read_target(text: str) -> Target:
    """Parse a target from a file. Raises TargetError as `parse_target` does, and for an option that names a program."""
    reason = why_refused(text)
    if reason:
        raise TargetError(f"asked for a target from a file, which {reason}; take it out of the file, and name a compiler by --cc, $CC or a target of your own")
    return parse_target(text)


@lru_cache(maxsize=4096)  # lines of a log repeat their target
def why_refused(text: str) -> str:
    """Why a target's text from a file may not be used; '' if it may.

    It may not name a program in any form: as words or JSON, quoted, or in a nested target. The answer is the predicate of "the target ...".
    """
    return f"has {len(text)} characters, more than the {LONGEST} that are read" if len(text) > LONGEST else _in_text(text, 0)


def without_programs(text: str) -> str:
    """A target's text for a file: without options that name a program."""
    if not why_refused(text):
        return text
    if text.lstrip().startswith("{"):
        try:
            fields = json.loads(text)
            return json.dumps({name: value for name, value in fields.items() if not _in_value({name: value}, 0)})
        except ValueError:
            pass  # not JSON: words
    kept: list[str] = []
    dropped = False
    for word in _words(text):
        is_value = dropped and not word.startswith("-")  # of `-cc gcc`
        dropped = not is_value and bool(_in_word(word, "", 0))
        if not dropped and not is_value:
            kept.append(word)
        dropped = dropped and "=" not in word
    return " ".join(map(shlex.quote, kept))


def _in_text(text: str, depth: int) -> str:
    if depth > DEEPEST:
        return _TOO_DEEP
    if text.lstrip().startswith(("{", "[")):
        try:
            return _in_value(json.loads(text), depth + 1)
        except (ValueError, RecursionError):
            pass  # not JSON: words
    return _first(_in_word(word, text, depth) for word in dict.fromkeys([*_words(text), *text.split()]))


def _in_word(word: str, text: str, depth: int) -> str:
    value = word.partition("=")[2]
    inner = [value] * bool(value) + [word] * (word != text and any(letter in word for letter in " \t\n\"'\\{"))
    return _option(word) or _first(_in_text(part, depth + 1) for part in inner)


def _in_value(value: object, depth: int) -> str:
    if depth > DEEPEST:
        return _TOO_DEEP
    if isinstance(value, str):
        return _in_text(value, depth + 1)
    if isinstance(value, dict):
        return _first(_option(f"-{name}") for name in value) or _first(_in_value(item, depth + 1) for item in value.values())
    return _first(_in_value(item, depth + 1) for item in value) if isinstance(value, list) else ""


def _option(word: str) -> str:
    """Why a word is refused: its option names a program; '' if it does not."""
    name = word.lstrip("-").partition("=")[0].strip("\"'")
    return f"has -{name}, which names a program to start" if word.startswith("-") and name in _names() else ""


def _names() -> frozenset[str]:
    find_kind("cpu")  # registers those of this package
    return frozenset(option.name for kind in known_kinds() for option in kind.options if option.starts_program)


def _first(found: Iterable[str]) -> str:
    return next(filter(None, found), "")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return [word.lstrip("\"'") for word in text.split()]

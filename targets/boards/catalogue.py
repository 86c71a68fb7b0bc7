"""Finds boards by name. The package's boards are TOML files in this folder; a user's own board is the path of such a file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from ansor.codegen.image.board import Board
from ansor.errors import TargetError
from ansor.targets.boards.checks import mistakes

FOLDER = Path(__file__).parent
HERE = "HERE/"
"""Prefix of a word in a command that names a file beside the board's."""

KINDS: Mapping[object, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false", tuple: "a list"}
"""Names of types, in TOML's terms."""

T = TypeVar("T")


def board_names() -> list[str]:
    """Names of the boards of the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def find_board(name: str) -> Board:
    """The board of that name, or in that .toml file. Raises TargetError if it does not exist or is not a board's file."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    return _read(path, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _read(path: Path, changed: int) -> Board:
    if not changed and path.parent != FOLDER:
        cure = "give the path of one that describes a board (docs/boards.md), or a board's name without .toml"
        raise TargetError(f"asked for the board of {path}, but there is no such file; {cure}")
    if not changed:
        listed = ", ".join(board_names())
        raise TargetError(f"asked for the board {path.stem}; the boards are {listed}, or the path of a .toml file that describes one (docs/boards.md)")
    try:
        board = _made(Board, {"name": str(path) if path.parent != FOLDER else path.stem, **tomllib.loads(path.read_text())}, str(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TargetError(f"asked for the board of {path}, which cannot be read: {error}") from error
    for mistake in mistakes(board):
        raise TargetError(f"{path}: {mistake}")
    command = tuple(word.replace(HERE, f"{path.parent.absolute()}/", 1) if word.startswith(HERE) else word for word in board.run.command)
    return replace(board, run=replace(board.run, command=command))


def _made(kind: type[T], data: object, place: str) -> T:
    """A dataclass from a table."""
    if not isinstance(data, Mapping):
        raise TargetError(f"{place}: expected a table, found {data!r:.80}")
    hints, known = get_type_hints(kind), {one.name: one for one in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    for name in data:
        if name not in known:
            raise TargetError(f"{place} has {name!r}; it may have {', '.join(known)}")
    for name, one in known.items():
        if name not in data and one.default is MISSING and one.default_factory is MISSING:
            raise TargetError(f"{place} lacks {name!r}")
    return kind(**{name: _value(hints[name], value, f"{place}, {name}") for name, value in data.items()})


def _value(kind: Any, value: Any, place: str) -> object:
    """A value of that type. TOML's arrays become tuples."""
    origin = get_origin(kind)
    if origin is UnionType:
        fitting = next((one for one in get_args(kind) if _fits(one, value)), None)
        return _value(fitting, value, place) if fitting is not None else _refused(kind, value, place)
    if origin is tuple:
        if not isinstance(value, list):
            _refused(kind, value, place)
        inner = get_args(kind)
        kinds = inner[:1] * len(value) if inner[-1:] == (...,) else inner
        if len(kinds) != len(value):
            _refused(kind, value, place)
        return tuple(_value(one, part, place) for one, part in zip(kinds, value, strict=True))
    if hasattr(kind, "__dataclass_fields__"):
        return _made(kind, value, place)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
        _refused(kind, value, place)
    return value


def _fits(kind: Any, value: object) -> bool:
    return isinstance(value, list) if get_origin(kind) is tuple else isinstance(value, kind)


def _refused(kind: object, value: object, place: str) -> object:
    wanted = KINDS.get(get_origin(kind) or kind, str(kind))
    if get_origin(kind) is tuple and get_args(kind)[-1:] != (...,):
        wanted = f"a list of {len(get_args(kind))} values"
    raise TargetError(f"{place}: {value!r:.80} is not {wanted}")

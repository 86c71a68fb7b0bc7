"""Log lines in the protocol "pickle": parts separated by tabs, most of them pickles in base64. Source: AutoTVM 0.9, `autotvm.record`.

    llvm    [name, args, kwargs]    configuration    (costs, error_no, all_cost, timestamp)    0.2    0.9.0

A pickle is a program. This reader only accepts the names of TVM's configuration classes, which it replaces with plain value holders, and refuses every other
name, so that nothing in the line runs.
"""

from __future__ import annotations

import base64
import io
import math
import pickle
import pickletools
from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

from ansor.errors import RecordError
from ansor.support.json_values import DEEPEST, LONGEST, Json, brief, frozen, refuse

MODULE = "tvm.autotvm.task.space"
KNOBS = {"sp": ("SplitEntity", "size"), "re": ("ReorderEntity", "perm"), "an": ("AnnotateEntity", "anns"), "ot": ("OtherOptionEntity", "val")}
"""Tag of a knob's value in JSON -> TVM's class, and its attribute."""

UNSET: Mapping[str, Json] = {"_collect": False, "space_map": None, "_space_map": None, "_length": None, "_constraints": [], "errors": [], "flop": 0.0,
                             "cost": None, "is_fallback": False}  # fmt: skip
"""Further attributes of TVM's configurations, with their initial values."""

VALUES = 1 << 16
"""The maximum number of values in a pickle; a list held twice counts twice."""


class _StateStub:
    """A stand-in for an object that holds only its state."""

    state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Config(_StateStub):
    """A configuration."""


_HOLDERS: dict[str, type[_StateStub]] = {tag: type(name, (_StateStub,), {}) for tag, (name, _) in KNOBS.items()}
_CLASSES: dict[tuple[str, str], type] = {
    (MODULE, "ConfigEntity"): _Config, ("collections", "OrderedDict"): dict, **{(MODULE, KNOBS[tag][0]): held for tag, held in _HOLDERS.items()},
}  # fmt: skip


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        found = _CLASSES.get((module, name))
        return found or refuse(f"its pickle names {brief(ascii(f'{module}.{name}'))}, but only configurations of AutoTVM are read")

    def persistent_load(self, pid: object) -> NoReturn:
        refuse("its pickle refers to objects outside it")


def read(row: str) -> dict[str, Json]:
    """The line as the fields of a JSON line. Raises RecordError with the reason if it cannot be used."""
    if len(row) > LONGEST:
        refuse(f"it has {len(row)} characters, the longest that is read has {LONGEST}")
    parts = row.rstrip("\n").split("\t")
    if len(parts) != 6:
        refuse(f"it has {len(parts)} parts separated by tabs; a pickled line of version 0.2 has 6")
    task, config, result = (_plain(_loaded(part)) for part in parts[1:4])
    if not isinstance(task, list):
        refuse("its second part is not a task")
    try:
        version = float(parts[4])
    except ValueError:
        refuse(f"its version is {brief(ascii(parts[4]))}, not a number")
    return {"input": [parts[0], *task], "config": config, "result": result, "version": version, "tvm_version": parts[5]}


def _loaded(part: str) -> object:
    try:
        data = base64.b64decode(part, validate=True)
        for code, value, _ in pickletools.genops(data):
            if "PUT" in code.name and isinstance(value, int) and value > len(data):  # the unpickler would create a table of that length
                refuse("its pickle numbers its values beyond its length")
        return _Reader(io.BytesIO(data)).load()
    except RecordError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, EOFError, RecursionError, pickle.UnpicklingError) as error:
        refuse(f"its pickle cannot be read ({brief(ascii(str(error)))})")


def _plain(value: object) -> Json:
    """A value as JSON holds it; a configuration becomes an object."""
    left = [VALUES]

    def plain(one: object, depth: int) -> Json:
        left[0] -= 1
        if left[0] < 0 or depth > DEEPEST:
            refuse(f"its pickle holds more than {VALUES} values, or lists nested more than {DEEPEST} deep")
        if isinstance(one, list | tuple):
            return [plain(item, depth + 1) for item in one]
        if isinstance(one, dict):
            return {name if isinstance(name, str) else refuse("its pickle has a name that is not a text"): plain(item, depth + 1) for name, item in one.items()}
        if isinstance(one, _Config):
            return plain(_fields(one), depth + 1)
        if one is None or isinstance(one, bool | int | str) or (isinstance(one, float) and math.isfinite(one)):
            return one
        refuse(f"its pickle holds a {type(one).__name__} instead of a plain value")

    return plain(value, 0)


def _fields(config: _Config) -> dict[str, object]:
    """A configuration as an object: index, code_hash and entity."""
    state = config.state
    knobs = state.get("_entity_map") if isinstance(state, dict) else None
    if not isinstance(state, dict) or not isinstance(knobs, dict):
        refuse("its pickle has a configuration without knobs")
    return {"index": state.get("index"), "code_hash": state.get("code_hash"), "entity": [[name, *_value(knob)] for name, knob in knobs.items()]}


def _value(knob: object) -> tuple[str, object]:
    for tag, (_, attribute) in KNOBS.items():
        if isinstance(knob, _HOLDERS[tag]) and isinstance(knob.state, dict):
            return tag, knob.state.get(attribute)
    refuse(f"its pickle has a {type(knob).__name__} instead of a knob")


def written(fields: Mapping[str, Json]) -> str:
    """The pickled line for the fields of a JSON line, with TVM's classes by name."""
    (target, *task), config = cast("Sequence[Json]", fields["input"]), cast("dict[str, Json]", fields["config"])
    knobs = cast("Sequence[tuple[str, str, Json]]", config["entity"])
    entities = {name: _object(KNOBS[tag][0], {KNOBS[tag][1]: _body(value)}) for name, tag, value in knobs}
    state = {"index": _body(config["index"]), "code_hash": _body(config["code_hash"]), "_entity_map": b"ccollections\nOrderedDict\n)R" + _items(entities)}
    state.update({name: _body(value) for name, value in UNSET.items()})
    parts = (_body([frozen(one) for one in task]), _object("ConfigEntity", state), _body(frozen(fields["result"])))
    pickles = [base64.b64encode(b"\x80\x02" + part + b".").decode() for part in parts]
    return "\t".join([str(target), *pickles, str(fields["version"]), str(fields["tvm_version"])])


def _body(value: object) -> bytes:
    """Opcodes for a plain value, without the pickle's head and end."""
    return pickle.dumps(value, 2)[2:-1]


def _object(name: str, state: Mapping[str, bytes]) -> bytes:
    """Opcodes that create an object of a class and set its state."""
    return f"c{MODULE}\n{name}\n".encode() + b")\x81}" + _items(state) + b"b"


def _items(items: Mapping[str, bytes]) -> bytes:
    """Opcodes that fill the dict created before."""
    return b"(" + b"".join(_body(name) + value for name, value in items.items()) + b"u"

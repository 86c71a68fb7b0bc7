"""A keyword that a public function does not have is told with those it has."""

from __future__ import annotations

import inspect

import pytest

import ansor
from ansor.errors import ArgumentTypeError
from ansor.support.names import known_names


@known_names()
def scaled(value: int, *, by: int = 2) -> int:
    """Value, by."""
    return value * by


def test_the_function_is_what_it_was() -> None:
    assert scaled(3) == 6 and scaled(value=3, by=4) == 12
    assert scaled.__name__ == "scaled" and list(inspect.signature(scaled).parameters) == ["value", "by"]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'value'"):
        scaled(by=3)  # type: ignore[call-arg]


def test_the_name_and_the_hint_may_be_others() -> None:
    function = known_names("times", lambda name, value, names: f": {name} {value} {len(names)}")(scaled.__wrapped__)  # type: ignore[attr-defined]
    with pytest.raises(ArgumentTypeError, match="^asked times for bye=3, which it does not take: bye 3 2; by name it takes value, by$"):
        function(3, bye=3)


@pytest.mark.torch
@pytest.mark.parametrize(("name", "keyword", "hint"), [
    ("extract_tasks", "targets", " (did you mean target?)"), ("extract_tasks", "threads", ': write target="cpu -threads=3"'), ("extract_tasks", "trails", ""),
    ("extract_int8_tasks", "ram_byte", " (did you mean ram_bytes?)"), ("create_pack", "records_", " (did you mean records?)"),
    ("import_pack", "measured", " (did you mean measure?)"), ("load_records", "workloads", " (did you mean workload?)"),
    ("load_pack", "paths", " (did you mean path?)"), ("load", "folders", " (did you mean folder?)"), ("build", "verified", " (did you mean verify?)"),
    ("lower", "simple", " (did you mean simple_mode?)"), ("create_schedule", "op", " (did you mean ops?)"),
    ("register_workload", "overide", " (did you mean override?)"),
    ("compile", "trails", " (did you mean trials?)"), ("export", "isa", " (did you mean isas?)"), ("SearchTask", "pin", " (did you mean pins?)"),
])  # fmt: skip
def test_public_functions_say_what_they_take(name: str, keyword: str, hint: str) -> None:
    arguments = {"export": (1, 2, 3)}.get(name, () if name in ("register_workload", "SearchTask") else (1,))
    with pytest.raises(ArgumentTypeError) as raised:
        getattr(ansor, name)(*arguments, **{keyword: 3})
    assert str(raised.value).startswith(f"asked {name} for {keyword}=3, which it does not take{hint}; by name it takes ")


def test_names_of_the_package_are_hinted_at() -> None:
    there = ", but there is a module of that name: write `import ansor.explain`"
    for name, hint in (("auto_shedule", r" \(did you mean auto_schedule\?\)"), ("explain", there)):
        with pytest.raises(AttributeError, match=f"module 'ansor' has no attribute '{name}'{hint}"):
            ansor.__getattr__(name)
    assert not hasattr(ansor, "_nothing") and not hasattr(ansor, "xyzzy") and not hasattr(ansor, "te.sum")

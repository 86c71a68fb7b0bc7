"""The findings of `ansor doctor`: one line each, with a remedy if something is wrong or could be better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One finding. name: what was checked; fix: what to do, "" if all is well; fine: False if nothing can be measured until that is done."""

    name: str
    text: str
    fix: str = ""
    fine: bool = True

    def __str__(self) -> str:
        between = " " if self.text.endswith("?") else "; "
        return f"{self.name:<10} {self.text}{between + self.fix if self.fix else ''}"


def told(name: str, sentence: str, what: str = "", *, fix: str) -> Finding:
    """A finding from an error message, which usually ends with what to do. fix: what to do if it does not."""
    text, _, cure = sentence.rpartition("; ")
    return Finding(name, f"{what}{text}", cure, fine=False) if text else Finding(name, f"{what}{sentence}", fix, fine=False)

"""What the table of reached statements counts, and for whom."""

from pathlib import Path

import pytest
from line_coverage import Reached, missing, own_test, table

FILES = [
    Reached(Path("ansor/ir/linear.py"), frozenset({1, 2, 3, 4}), frozenset({1, 2, 3}), frozenset({1})),
    Reached(Path("ansor/ir/loops.py"), frozenset({1, 2}), frozenset({1, 2}), frozenset({1, 2})),
    Reached(Path("rules/base.py"), frozenset({1, 2}), frozenset({1, 2}), frozenset({1, 2})),
    Reached(Path("ansor/cli.py"), frozenset(), frozenset(), frozenset()),
]


@pytest.mark.parametrize(
    ("path", "test"),
    [("ansor/ir/linear.py", "tests/ir/test_linear.py"), ("rules/base.py", "tests/rules/test_base.py"), ("ansor/cli.py", "tests/test_cli.py")],
)
def test_each_file_has_its_own_test(path: str, test: str) -> None:
    assert own_test(Path(path)) == test


def test_shares_of_folders_fewest_first_and_of_all() -> None:
    assert [line.split() for line in table(FILES)] == [
        ["folder", "statements", "reached", "by", "others"], ["ansor", "0", "0.0%", "0.0%"], ["ansor/ir", "6", "83.3%", "50.0%"],
        ["rules", "2", "100.0%", "100.0%"], ["all", "8", "87.5%", "62.5%"],
    ]  # fmt: skip


def test_lines_that_nothing_else_reaches() -> None:
    assert missing(FILES, "ansor/ir") == ["ansor/ir/linear.py: 2 3 4"]

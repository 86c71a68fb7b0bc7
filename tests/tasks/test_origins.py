"""Who made the fastest program, in words."""

from ansor.tasks.origins import RULES, origin_of, standing
from ansor.templates.label import template_label


def test_labels() -> None:
    label = template_label("matmul")
    assert label == "template 'matmul'" and [origin_of(name) for name in ("", "winograd_f4", label)] == [RULES, RULES, label]


def test_the_fastest_comes_first() -> None:
    assert standing({RULES: 1.2e-3, "template 'a'": 1.1e-3}) == "best: template 'a' 1.1 ms; best of the rules 1.2 ms"
    assert standing({"template 'b'": None, RULES: 2e-6}) == "best: the rules 2 us; no valid program of template 'b'"
    assert standing({RULES: None}) == "no valid program of the rules"

"""The C tree as text."""

from ansor.codegen.tree import Block, block, lines, nested


def test_blocks_are_indented_and_empty_lines_stay_empty() -> None:
    tree = block("void f(void)", ["int a = 0;", "", block("", ["a += 1;"])])
    assert lines([tree]) == ["void f(void) {", "  int a = 0;", "", "  {", "    a += 1;", "  }", "}"]


def test_nested_heads_are_inside_each_other() -> None:
    assert nested(["for (i)", "for (j)"], ["x;"]) == [Block("for (i)", (Block("for (j)", ("x;",)),))]
    assert nested([], ["x;"]) == ["x;"]

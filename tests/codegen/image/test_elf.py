"""Images: read from what a linker made, written, and read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansor.codegen.image.elf import Image, Segment, read_image, write_elf
from ansor.codegen.image.harness import CODE_BYTES, data_bytes
from ansor.codegen.image.toolchain import IMAGE, PLAIN, ImageToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.errors import ToolchainError
from ansor.targets.boards.catalogue import board_names, find_board

SEGMENTS = some.lists(some.tuples(some.integers(0, 2**31), some.binary(min_size=1, max_size=40)), max_size=4)
NAMES = some.dictionaries(some.from_regex("[a-z_]{1,12}", fullmatch=True), some.integers(0, 2**32 - 1), max_size=4)


@given(SEGMENTS, NAMES, some.sampled_from([32, 64]))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, segments: list[tuple[int, bytes]], names: dict[str, int], bits: int) -> None:
    path = tmp_path_factory.mktemp("elf") / "image.elf"
    image = Image(243, 5, bits, 0x8000_0000, tuple(Segment(*one) for one in segments), names)
    write_elf(image, path)
    assert read_image(path) == image


@given(some.binary(max_size=200))
def test_what_is_no_elf_file_is_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("elf") / "image.elf"
    path.write_bytes(content)
    with pytest.raises(ToolchainError):
        read_image(path)


@pytest.mark.compiler
@pytest.mark.parametrize("name", board_names())
def test_images_of_a_board_lie_in_its_memories_and_differ_in_the_candidate_alone(name: str, tmp_path: Path) -> None:
    toolchain = ImageToolchain(find_compiler("zig"), find_board(name))
    toolchain.prepare(IMAGE)
    made = toolchain.build([PLAIN], IMAGE, tmp_path / "one", timeout=60)
    assert made.said.ok, made.said.text
    image, common = read_image(made.artifacts[0].path), toolchain.harness()
    for one in image.segments:
        assert any(memory.start <= one.address and one.end <= memory.end for memory in toolchain.board.memories), hex(one.address)
    assert image.segments[: len(common.segments)] == common.segments and len(image.segments) > len(common.segments)
    assert image.symbols["ansor_free"] < toolchain.board.heap_end
    symbols, board = common.symbols, toolchain.board
    assert symbols["ansor_code_end"] - board.code.start <= CODE_BYTES
    assert symbols["ansor_data_end"] - (board.data.start if board.code_is_apart else symbols["ansor_code_end"]) <= data_bytes(board)


def test_a_place_is_a_name_of_code_before_it() -> None:
    names = {"ansor_parts": 0x1040, "ansor_candidate_3": 0x1041, "ansor_free_ansor_candidate_3": 0x1100, "deeper": 0x1081, "ansor_stop": 0x800}
    image = Image(243, 5, 32, 0, (), names)
    assert image.place(0x1064) == "candidate+0x24" and image.place(0x1104) == "deeper+0x84" and image.place(0x600) == "0x600"
    assert image.place(0x810) == "ansor_stop+0x10" and image.place(0x1000) == "in the trial program, not in the candidate"

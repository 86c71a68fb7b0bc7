"""Programs as text, exactly."""

from __future__ import annotations

from ansor.vta.configuration import Memory
from ansor.vta.instructions import Alu, AluOp, Finish, Gemm, Instruction, Load, Loop, Padding, Rows, Store, Tokens, UopRange
from ansor.vta.text import listing


def test_listing() -> None:
    program: list[Instruction] = [
        Load(Memory.UOP, 0, 3, Rows(1, 9, 9)),
        Load(Memory.INP, 0, 64, Rows(3, 14, 56), Padding(1, 0, 1, 1), Tokens(pop_next=True, push_next=True)),
        Load(Memory.INP, tokens=Tokens(push_next=True)),
        Gemm(UopRange(0, 9), Loop(2, 14, 16, 9), Loop(14, 1, 1, 0), tokens=Tokens(pop_prev=True)),
        Gemm(UopRange(0, 1), reset=True),
        Alu(AluOp.SHR, UopRange(0, 1), -3, inner=Loop(4, 1, 1)),
        Alu(AluOp.ADD, UopRange(0, 1), tokens=Tokens(push_prev=True, push_next=True)),
        Store(0, 2, Rows(1, 4, 4), Tokens(pop_prev=True, push_prev=True)),
        Finish(Tokens(pop_next=True)),
    ]
    assert listing(program) == """\
    0 compute LOAD UOP[0] <- DRAM[3] 1x9 stride=9
    1 load    LOAD INP[0] <- DRAM[64] 3x14 stride=56 pad_y=1,0 pad_x=1,1 pop_next push_next
    2 load    LOAD INP nothing push_next
    3 compute GEMM uops=0..9 out=2(dst+14,src+16,wgt+9) in=14(dst+1,src+1,wgt+0) pop_prev
    4 compute GEMM reset uops=0..1
    5 compute ALU SHR -3 uops=0..1 in=4(dst+1,src+1)
    6 compute ALU ADD ACC[src] uops=0..1 push_prev push_next
    7 store   STORE OUT[0] -> DRAM[2] 1x4 stride=4 pop_prev push_prev
    8 compute FINISH pop_next"""

/* RISC-V, 32 and 64 bits, machine mode. */
#include "arch.h"
#include "monitor.h"

#if __riscv_xlen == 64
#define STORE "sd "
#define LOAD "ld "
#define WORD "8"
#else
#define STORE "sw "
#define LOAD "lw "
#define WORD "4"
#endif

volatile uint8_t arch_armed;
volatile uint32_t arch_cause;
volatile uintptr_t arch_pc;
uintptr_t arch_place[16];

__attribute__((naked, section(".start"), used)) void _start(void)
{
    __asm__ volatile(
        "csrw mie, zero\n"
        "la sp, stack_top\n"
        "la t0, bss_start\n"
        "la t1, bss_end\n"
        "1: bgeu t0, t1, 2f\n"
        "sw zero, 0(t0)\n"
        "addi t0, t0, 4\n"
        "j 1b\n"
        "2: j monitor_main\n");
}

#define REGISTERS(op) \
    op "ra, 0(t0)\n" op "sp, 1*" WORD "(t0)\n" op "gp, 2*" WORD "(t0)\n" op "tp, 3*" WORD "(t0)\n" op "s0, 4*" WORD "(t0)\n" op "s1, 5*" WORD "(t0)\n" \
    op "s2, 6*" WORD "(t0)\n" op "s3, 7*" WORD "(t0)\n" op "s4, 8*" WORD "(t0)\n" op "s5, 9*" WORD "(t0)\n" op "s6, 10*" WORD "(t0)\n" \
    op "s7, 11*" WORD "(t0)\n" op "s8, 12*" WORD "(t0)\n" op "s9, 13*" WORD "(t0)\n" op "s10, 14*" WORD "(t0)\n" op "s11, 15*" WORD "(t0)\n"

__attribute__((naked)) int arch_save(void)
{
    __asm__ volatile("la t0, arch_place\n" REGISTERS(STORE) "li a0, 0\nret\n");
}

__attribute__((naked, noreturn, used)) static void arch_restore(int how)
{
    __asm__ volatile("la t0, arch_place\n" REGISTERS(LOAD) "ret\n");
}

/* The target of the jump at `stop`. */
__attribute__((naked, aligned(4))) static void back(void) { __asm__ volatile("li a0, 1\nj arch_restore\n"); }

__attribute__((used, noreturn)) static void trapped(uintptr_t cause, uintptr_t pc)
{
    if (!arch_armed) monitor_main();
    arch_cause = (uint32_t)cause;
    arch_pc = pc;
    arch_restore(CAME_TRAP);
}

__attribute__((naked, aligned(4))) static void trap_entry(void)
{
    __asm__ volatile(
        "la sp, stack_top\n" /* the program's stack pointer may be anything */
        "addi sp, sp, -256\n"
        "csrr a0, mcause\n"
        "csrr a1, mepc\n"
        "j trapped\n");
}

void arch_after(void)
{
    arch_armed = 0;
    __asm__ volatile("csrw mie, zero\ncsrci mstatus, 8\ncsrw mtvec, %0" ::"r"(trap_entry) : "memory");
}

void arch_setup(void) { arch_after(); }

void arch_barrier(void) { __asm__ volatile("fence\nfence.i" ::: "memory"); }

/* auipc t0, high; jr low(t0) */
unsigned arch_jump(uint8_t code[16], uintptr_t at)
{
    intptr_t way = (intptr_t)((uintptr_t)back - at);
    uint32_t words[2] = {((uint32_t)(way + 0x800) & 0xFFFFF000) | 0x297, (uint32_t)way << 20 | 0x28067};
#if __riscv_xlen == 64
    if (way + 0x800 != (int32_t)(way + 0x800)) return 0;
#endif
    for (int i = 0; i < 8; i++) code[i] = (uint8_t)(words[i / 4] >> i % 4 * 8);
    return at & 1 ? 0 : 8;
}

void arch_run(uintptr_t entry, uint32_t milliseconds)
{
    (void)milliseconds;
    __asm__ volatile("fence.i\njr %0" ::"r"(entry) : "memory");
    __builtin_unreachable();
}

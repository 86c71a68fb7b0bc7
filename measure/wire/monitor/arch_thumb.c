/* Cortex-M: ARMv6-M, ARMv7-M, ARMv8-M. Faults are exceptions; the monitor leaves one by an exception return to its own code. */
#include "arch.h"
#include "bare.h"

enum { RETURN_TO_THREAD = 0xFFFFFFF9 };

volatile uint8_t arch_armed;
volatile uint32_t arch_cause;
volatile uintptr_t arch_pc;
uint32_t arch_place[10];
extern char stack_top[];
static void trap_entry(void);

__attribute__((naked, used)) void _start(void)
{
    __asm__ volatile(
        "ldr r0, =stack_top\n"
        "mov sp, r0\n"
        "ldr r0, =bss_start\n"
        "ldr r1, =bss_end\n"
        "movs r2, #0\n"
        "1: cmp r0, r1\n"
        "bhs 2f\n"
        "str r2, [r0]\n"
        "adds r0, r0, #4\n"
        "b 1b\n"
        "2: ldr r0, =monitor_main\n"
        "bx r0\n");
}

__attribute__((section(".start"), used, aligned(512))) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, _start, trap_entry, trap_entry, trap_entry, trap_entry, trap_entry, trap_entry,
    trap_entry, trap_entry, trap_entry, trap_entry, trap_entry, trap_entry, trap_entry, trap_entry,
};

__attribute__((naked)) int arch_save(void)
{
    __asm__ volatile(
        "ldr r0, =arch_place\n"
        "stmia r0!, {r4-r7}\n"
        "mov r1, r8\n"
        "mov r2, r9\n"
        "mov r3, r10\n"
        "stmia r0!, {r1-r3}\n"
        "mov r1, r11\n"
        "mov r2, sp\n"
        "mov r3, lr\n"
        "stmia r0!, {r1-r3}\n"
        "movs r0, #0\n"
        "bx lr\n");
}

__attribute__((naked, noreturn, used)) static void arch_restore(int how)
{
    __asm__ volatile(
        "movs r1, #0\n"
        "msr control, r1\n" /* the main stack */
        "isb\n"
        "ldr r1, =arch_place+16\n"
        "ldmia r1!, {r2-r4}\n"
        "mov r8, r2\n"
        "mov r9, r3\n"
        "mov r10, r4\n"
        "ldmia r1!, {r2-r4}\n"
        "mov r11, r2\n"
        "mov sp, r3\n"
        "mov lr, r4\n"
        "ldr r1, =arch_place\n"
        "ldmia r1!, {r4-r7}\n"
        "bx lr\n");
}

/* Continues in arch_restore(how), and leaves the exception if there is one. */
__attribute__((used, noreturn)) static void leave(int how, uint32_t exception)
{
    uint32_t *frame = (uint32_t *)((uintptr_t)arch_place[8] - 256); /* below the data saved on the monitor's own stack */
    if (!exception) arch_restore(how);
#if __ARM_ARCH > 6
    REGISTER(0xE000ED24) &= ~0xFFFFu;      /* no other exception is active */
    REGISTER(0xE000ED28) = 0xFFFFFFFF;     /* clear the fault status */
    REGISTER(0xE000ED2C) = 0xFFFFFFFF;
    REGISTER(0xE000EF34) &= ~1u;           /* no floating-point registers remain to be saved */
#endif
    frame[0] = (uint32_t)how;
    frame[6] = (uint32_t)arch_restore & ~1u;
    frame[7] = 0x01000000;
    __asm__ volatile(
        "mov r2, %0\n"
        "mov r3, %1\n"
        "movs r1, #0\n"
        "msr control, r1\n"
        "isb\n"
        "msr msp, r2\n"
        "bx r3\n" ::"r"(frame), "r"(RETURN_TO_THREAD) : "r1", "r2", "r3", "memory");
    __builtin_unreachable();
}

/* The target of the jump at `stop`, which may come from the program's own fault handler. */
__attribute__((naked, aligned(4))) static void back(void)
{
    __asm__ volatile(
        "cpsid i\n"
        "ldr r1, =arch_place+32\n"
        "ldr r1, [r1]\n"
        "subs r1, #128\n"
        "mrs r0, ipsr\n"
        "movs r2, #0\n"
        "msr msp, r1\n"
        "mov r1, r0\n"
        "movs r0, #1\n"
        "ldr r2, =leave\n"
        "bx r2\n");
}

__attribute__((used, noreturn)) static void trapped(uintptr_t frame, uint32_t exception)
{
    uint32_t cause = exception;
    if (!arch_armed) _start();
    arch_pc = 0;
#if __ARM_ARCH > 6
    cause = REGISTER(0xE000ED28); /* CFSR */
    if (cause & 0x1010) frame = 0; /* the registers were not saved: the program's stack is not in memory */
    if (!cause) cause = exception;
#endif
    if (frame) arch_pc = ((uint32_t *)frame)[6];
    arch_cause = cause;
    leave(CAME_TRAP, exception);
}

__attribute__((naked)) static void trap_entry(void)
{
    __asm__ volatile(
        "cpsid i\n"
        "mov r1, lr\n"
        "lsls r1, r1, #29\n" /* which stack holds the registers */
        "mrs r0, msp\n"
        "bpl 1f\n"
        "mrs r0, psp\n"
        "1: ldr r1, =arch_place+32\n"
        "ldr r1, [r1]\n"
        "subs r1, #128\n"
        "msr msp, r1\n"
        "mrs r1, ipsr\n"
        "ldr r2, =trapped\n"
        "bx r2\n");
}

void arch_after(void)
{
    arch_armed = 0;
    __asm__ volatile("cpsid i" ::: "memory");
    REGISTER(0xE000E010) = 0;                                                   /* SysTick */
    for (uint32_t i = 0; i < 32; i += 4) REGISTER(0xE000E180 + i) = 0xFFFFFFFF; /* interrupts: none enabled, none pending */
    for (uint32_t i = 0; i < 32; i += 4) REGISTER(0xE000E280 + i) = 0xFFFFFFFF;
    REGISTER(0xE000ED04) = 0x0A000000;                                          /* neither SysTick's nor PendSV's */
    REGISTER(0xE000ED08) = (uint32_t)vectors;                                   /* on ARMv6-M without that register, the vectors are at 0 */
    arch_barrier();
}

void arch_setup(void) { arch_after(); }

void arch_barrier(void) { __asm__ volatile("dsb\nisb" ::: "memory"); }

/* ldr r0, =back; bx r0. The address follows in the next aligned word. */
unsigned arch_jump(uint8_t code[16], uintptr_t at)
{
    uint32_t odd = at & 2, target = (uint32_t)back | 1;
    if (at & 1) return 0;
    code[0] = odd ? 1 : 0;
    code[1] = 0x48;
    code[2] = 0;
    code[3] = 0x47;
    for (uint32_t i = 0; i < 4; i++) code[4 + odd + i] = (uint8_t)(target >> i * 8);
    if (odd) code[4] = code[5] = 0;
    return 8 + odd;
}

void arch_run(uintptr_t entry, uint32_t milliseconds)
{
    (void)milliseconds;
    arch_barrier();
    __asm__ volatile("cpsie i\nbx %0" ::"r"(entry | 1) : "memory");
    __builtin_unreachable();
}

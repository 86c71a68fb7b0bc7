/* Start-up, traps, counters and the watchdog of RISC-V cores in machine mode. */
#include "bare.h"

#if __riscv_xlen == 64
#define STORE "sd "
#define LOAD "ld "
#define CAUSE_INTERRUPT (UINT64_C(1) << 63)
#else
#define STORE "sw "
#define LOAD "lw "
#define CAUSE_INTERRUPT (UINT32_C(1) << 31)
#endif

#define CSR_READ(name) ({ uintptr_t value; __asm__ volatile("csrr %0, " name : "=r"(value)); value; })
#define CSR_WRITE(name, value) __asm__ volatile("csrw " name ", %0" ::"r"((uintptr_t)(value)))
#define CSR_SET(name, value) __asm__ volatile("csrs " name ", %0" ::"r"((uintptr_t)(value)))
#define CSR_CLEAR(name, value) __asm__ volatile("csrc " name ", %0" ::"r"((uintptr_t)(value)))

enum { GUARD = 0x80 | 3 << 3 }; /* locked, a power of two */
enum { FLOATS_AND_VECTORS = 1 << 13 | 1 << 9, TIMER = 1 << 7, ENABLED = 1 << 3 };

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

void riscv_begin(void);
void riscv_trapped(void);

__asm__(".section .start,\"ax\",@progbits\n"
        ".globl _start\n"
        "_start:\n"
        "  csrw mie, zero\n"
        "  csrr t0, mhartid\n"
        "  addi t0, t0, -" TEXT(BOARD_HART) "\n"
        "  bnez t0, riscv_idle\n"
        "  la sp, ansor_stack_top\n"
        "  la t0, riscv_trap\n"
        "  csrw mtvec, t0\n"
        "  j riscv_begin\n"
        "riscv_idle:\n" /* another hart than the one that runs programs */
        "  wfi\n"
        "  j riscv_idle\n"
        ".align 8\n" /* some cores know tables of vectors alone, at multiples of 256; traps take its first entry */
        "riscv_trap:\n"
#ifdef TRIAL_APART
        "  csrr t0, mepc\n"
        "  la t1, riscv_leave\n"
        "  bne t0, t1, riscv_ended\n"
        "  csrr t0, mcause\n"
        "  addi t0, t0, -8\n" /* a call of who has no rights */
        "  beqz t0, riscv_back\n"
        "riscv_ended:\n"
#endif
        "  la sp, ansor_stack_top\n" /* nothing of what ran is needed any more */
        "  j riscv_trapped\n"
        ".text\n");

#ifdef TRIAL_APART
/* A candidate runs in user mode, and comes back by a call. mscratch: the stack, which is not its to change. */
__asm__(".text\n"
        ".globl system_call\n"
        "system_call:\n"
        "  addi sp, sp, -32\n"
        "  " STORE "ra, 0(sp)\n"
        "  csrr t0, mstatus\n"
        "  " STORE "t0, 8(sp)\n"
        "  csrw mscratch, sp\n"
        "  li t1, 3 << 11\n"
        "  csrc mstatus, t1\n"
        "  csrw mepc, a4\n"
        "  la ra, riscv_leave\n"
        "  mret\n"
        ".align 2\n"
        "riscv_leave:\n"
        "  ecall\n"
        "riscv_back:\n"
        "  csrr sp, mscratch\n"
        "  " LOAD "ra, 0(sp)\n"
        "  " LOAD "t0, 8(sp)\n"
        "  csrw mstatus, t0\n"
        "  addi sp, sp, 32\n"
        "  ret\n");

enum { PAGE = 4096, READ = 1, WRITE = 2, RUN = 4, UP_TO = 1 << 3 };

/* The first entry that has an address decides: 0 is the guard, then from 1 to 2 the buffers, from 3 to 4 the stack, from 5 to 6 and from 7 to 8 all memory.
 * Simulators are slow where a page is not of one kind: whole ones. Code may begin, or end, in those of the buffers. */
uintptr_t allow_writes(uintptr_t start, uintptr_t end) {
    const uintptr_t last = (end + PAGE - 1) & -(uintptr_t)PAGE;
    CSR_WRITE("pmpaddr1", (start & -(uintptr_t)PAGE) >> 2);
    CSR_WRITE("pmpaddr2", last >> 2);
    CSR_WRITE("pmpaddr3", (uintptr_t)ansor_stack_low >> 2);
    CSR_WRITE("pmpaddr4", (uintptr_t)ansor_stack_top >> 2);
    CSR_WRITE("pmpaddr5", BOARD_DATA_START >> 2);
    CSR_WRITE("pmpaddr6", (BOARD_DATA_START + BOARD_DATA_BYTES) >> 2);
    CSR_WRITE("pmpaddr7", BOARD_CODE_START >> 2);
    CSR_WRITE("pmpaddr8", (BOARD_CODE_START + BOARD_CODE_BYTES) >> 2);
    const uint32_t low = GUARD | (uint32_t)(UP_TO | READ | WRITE | RUN) << 16, high = UP_TO | READ | WRITE | (UP_TO | READ | RUN) << 16;
#if __riscv_xlen == 64
    CSR_WRITE("pmpcfg0", (uint64_t)high << 32 | low);
#else
    CSR_WRITE("pmpcfg0", low);
    CSR_WRITE("pmpcfg1", high);
#endif
    CSR_WRITE("pmpcfg2", UP_TO | READ | RUN);
    return last;
}
#endif

/* Memory below the stack that faults; a locked entry holds in machine mode too. Cores without protection trap here, which is skipped. */
static void guard_stack(void) {
#ifdef BOARD_GUARD_BYTES
    const uintptr_t base = (uintptr_t)ansor_stack_low - BOARD_GUARD_BYTES;
    CSR_WRITE("pmpaddr0", base >> 2 | (BOARD_GUARD_BYTES / 8 - 1));
    CSR_WRITE("pmpcfg0", GUARD);
#endif
}

void riscv_begin(void) {
    bare_clear();
    CSR_CLEAR("mstatus", ENABLED);
    CSR_SET("mstatus", FLOATS_AND_VECTORS);
    guard_stack();
    bare_main();
}

static const char *const CAUSES[] = {"an instruction address that is not aligned", "no instructions are there", "an instruction that the processor does not have",
                                     "a breakpoint", "a read that is not aligned", "a read of what is not there, or is not the program's",
                                     "a write that is not aligned", "a write to what is not there, or is not the program's"};

static int below_stack(uintptr_t address) {
#ifdef BOARD_GUARD_BYTES
    return address < (uintptr_t)ansor_stack_low && address >= (uintptr_t)ansor_stack_low - BOARD_GUARD_BYTES;
#else
    (void)address;
    return 0;
#endif
}

void riscv_trapped(void) {
    const uintptr_t cause = CSR_READ("mcause"), pc = CSR_READ("mepc"), where = CSR_READ("mtval");
    CSR_WRITE("mie", 0);
    if (cause & CAUSE_INTERRUPT) bare_trapped("timeout", bare_too_long(), pc, 0);
    if (cause == 2) bare_trapped("instruction", CAUSES[2], pc, 0);
    if (below_stack(where)) bare_trapped("crash", "the stack overflowed", pc, where);
    if (cause == 7 && bare_trespass(where)) bare_trapped("out_of_bounds", BARE_NOT_ITS_OWN, pc, where);
    bare_trapped("trap", cause < sizeof CAUSES / sizeof CAUSES[0] ? CAUSES[cause] : "a trap of another cause", pc, where);
}

void start_counting(void) {
#ifdef BOARD_SETUP
    BOARD_SETUP
#endif
}

uint64_t counter_now(void) {
#if defined(BOARD_COUNTER_ALONE)
    static uint64_t total BARE_CHANGING;
    static uint32_t last BARE_CHANGING;
    const uint32_t now = (uint32_t)CSR_READ(BOARD_COUNTER_CSR);
    total += (uint32_t)(now - last);
    last = now;
    return total;
#elif __riscv_xlen == 64
    return CSR_READ(BOARD_COUNTER_CSR);
#else
    uintptr_t high, low, again;
    do high = CSR_READ(BOARD_COUNTER_CSR "h"), low = CSR_READ(BOARD_COUNTER_CSR), again = CSR_READ(BOARD_COUNTER_CSR "h");
    while (high != again);
    return (uint64_t)high << 32 | low;
#endif
}

__attribute__((noinline)) void known_passes(uint32_t passes) { __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b\n" : "+r"(passes)); }

void watchdog_start(uint64_t ticks) {
#ifdef BOARD_MTIMECMP
    volatile uint32_t *const now = (volatile uint32_t *)(BOARD_MTIME), *const then = (volatile uint32_t *)(BOARD_MTIMECMP);
    uint32_t high = now[1], low = now[0];
    if (now[1] != high) high = now[1], low = now[0];
    const uint64_t end = ((uint64_t)high << 32 | low) + ticks;
    then[1] = UINT32_MAX, then[0] = (uint32_t)end, then[1] = (uint32_t)(end >> 32);
    CSR_SET("mie", TIMER);
    CSR_SET("mstatus", ENABLED);
#else
    (void)ticks;
#endif
}

void watchdog_stop(void) {
    CSR_CLEAR("mstatus", ENABLED);
    CSR_WRITE("mie", 0);
}

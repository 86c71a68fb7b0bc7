/* Start-up, traps, counters and the watchdog of Cortex-M cores. Programs run in thread mode on the process stack, so that a stack that overflowed
 * leaves one for the handler. */
#include "bare.h"
#include "mpu.h"
#include "../trial/system.h"

enum { VECTORS = 16 + 64, HANDLER_STACK = 512 };

#define VTOR 0xe000ed08u
#define CPACR 0xe000ed88u
#define CFSR 0xe000ed28u
#define HFSR 0xe000ed2cu
#define MMFAR 0xe000ed34u
#define BFAR 0xe000ed38u
#define SHCSR 0xe000ed24u
#define CCR 0xe000ed14u
#define FPCCR 0xe000ef34u
#define NVIC_ENABLE 0xe000e100u
#define NVIC_DISABLE 0xe000e180u
#define NVIC_UNPEND 0xe000e280u

__attribute__((used)) static uint64_t handler_stack[HANDLER_STACK / 8];

void _start(void);
void thumb_trap(void);
#ifdef TRIAL_APART
void thumb_service(void);
#else
#define thumb_service thumb_trap
#endif
void thumb_begin(void);

#define TRAPS_8 thumb_trap, thumb_trap, thumb_trap, thumb_trap, thumb_trap, thumb_trap, thumb_trap, thumb_trap
__attribute__((section(".vectors"), used)) void (*const thumb_vectors[VECTORS])(void) = {
    (void (*)(void))(handler_stack + HANDLER_STACK / 8), _start, thumb_trap, thumb_trap, thumb_trap, thumb_trap, thumb_trap, thumb_trap,
    thumb_trap, thumb_trap, thumb_trap, thumb_service, thumb_trap, thumb_trap, thumb_trap, thumb_trap,
    TRAPS_8, TRAPS_8, TRAPS_8, TRAPS_8, TRAPS_8, TRAPS_8, TRAPS_8, TRAPS_8};

__attribute__((naked, noinline, section(".start"), used)) void _start(void) {
    __asm__ volatile("cpsid i\n"
                     "ldr r0, =handler_stack + %c0\n"
                     "msr msp, r0\n"
                     "ldr r0, =ansor_stack_top\n"
                     "msr psp, r0\n"
                     "movs r0, #2\n"
                     "msr control, r0\n"
                     "isb\n"
                     "ldr r0, =thumb_begin\n"
                     "bx r0\n"
                     ".ltorg\n" ::"i"(HANDLER_STACK));
}

#if defined(TRIAL_APART) && __ARM_ARCH >= 8 /* regions that nobody may write to bind the trial program as well, so they are on while a candidate runs */
#define PROTECT(how) "ldr r12, =0xe000ed94\n mov r4, #" how "\n str r4, [r12]\n dsb\n isb\n"
#else
#define PROTECT(how)
#endif

__attribute__((naked, used)) void thumb_trap(void) {
    __asm__ volatile(PROTECT("0")
                     "mrs r0, psp\n"
                     "mrs r1, ipsr\n"
                     "ldr r2, =thumb_trapped\n"
                     "bx r2\n"
                     ".ltorg\n");
}

#ifdef TRIAL_APART
/* A candidate runs without privileges, which it gets back by a call of the supervisor from the one place where it returns to. */
__attribute__((naked, noinline)) void system_call(void *const *args, unsigned char *workspace, trial_parallel_for loop, void *ctx, trial_entry entry) {
    __asm__ volatile("push {r4, lr}\n"
                     PROTECT("5")
                     "ldr r4, [sp, #8]\n"
                     "mov r12, #3\n"
                     "msr control, r12\n"
                     "isb\n"
                     "blx r4\n"
                     "svc 0\n"
                     "thumb_back:\n"
                     "pop {r4, pc}\n"
                     ".ltorg\n");
}

__attribute__((naked, used)) void thumb_service(void) {
    __asm__ volatile("mrs r0, psp\n"
                     "ldr r1, [r0, #24]\n"
                     "ldr r2, =thumb_back\n"
                     "bic r2, r2, #1\n"
                     "cmp r1, r2\n"
                     "bne.w thumb_trap\n"
                     PROTECT("0")
                     "movs r0, #2\n"
                     "msr control, r0\n"
                     "bx lr\n"
                     ".ltorg\n");
}
#endif

void thumb_begin(void) {
    bare_clear();
    set_register(VTOR, (uint32_t)(uintptr_t)thumb_vectors);
#if __ARM_ARCH >= 7
    set_register(SHCSR, register_at(SHCSR) | 7 << 16);
    set_register(CFSR, UINT32_MAX);
#endif
#ifdef __ARM_FP
    set_register(CPACR, register_at(CPACR) | 0xfu << 20);
    set_register(FPCCR, register_at(FPCCR) & ~(3u << 30)); /* nobody comes back from a trap, so nothing is kept for that */
    __asm__ volatile("dsb\n isb");
#endif
    watchdog_stop(); /* of a run that was halted */
    guard_stack();
    __asm__ volatile("dsb\n isb\n cpsie i");
    bare_main();
}

typedef struct {
    const char *kind, *why;
    uintptr_t pc, where;
} trap_note;

static trap_note note;

static void after_trap(void) {
    __asm__ volatile("cpsid i");
    bare_trapped(note.kind, note.why, note.pc, note.where);
}

static int in_memory(uint32_t frame) {
    const uint32_t low = (uint32_t)(uintptr_t)ansor_stack_low, top = (uint32_t)(uintptr_t)ansor_stack_top;
    return !(frame & 3) && frame >= low && frame + 32 <= top;
}

#if __ARM_ARCH >= 7
static void set_note(const char *kind, const char *why, uint32_t where) { note.kind = kind, note.why = why, note.where = where; }

static int below_stack(uint32_t address) {
    const uint32_t low = (uint32_t)(uintptr_t)ansor_stack_low;
#ifdef BOARD_GUARD_BYTES
    return address < low && low - address <= BOARD_GUARD_BYTES;
#else
    return address < low && low - address <= 64;
#endif
}

#ifdef BOARD_CODE_START
/* Whether a word is an address after a call, in Thumb code that is not this program's. */
static int is_return(uint32_t word) {
    const uint32_t at = word & ~1u, end = BOARD_CODE_START + BOARD_CODE_BYTES;
    if (!(word & 1) || at < (uint32_t)(uintptr_t)ansor_code_end + 4 || at >= end) return 0;
    const uint16_t *const before = (const uint16_t *)(uintptr_t)at - 2;
    return (before[0] >> 11 == 0x1e && before[1] >> 14 == 3) || before[1] >> 7 == 0x8f; /* bl, or blx with a register */
}

/* The innermost return address on the stack: an overflow leaves no room for the program counter. */
static uint32_t last_return(uint32_t frame) {
    const uint32_t low = (uint32_t)(uintptr_t)ansor_stack_low, top = (uint32_t)(uintptr_t)ansor_stack_top;
    for (uint32_t at = frame > low ? (frame + 3) & ~3u : low; at + 4 <= top; at += 4)
        if (is_return(*(const uint32_t *)(uintptr_t)at)) return *(const uint32_t *)(uintptr_t)at;
    return BARE_NO_PC;
}
#else
static uint32_t last_return(uint32_t frame) { return (void)frame, BARE_NO_PC; }
#endif

enum { NOT_KEPT = 1 << 20 | 1 << 12 | 1 << 4 }; /* the stack overflowed, so that the registers have no place on it */

static void explain(uint32_t frame) {
    const uint32_t status = register_at(CFSR), bus = status >> 15 & 1 ? register_at(BFAR) : 0, protection = status >> 7 & 1 ? register_at(MMFAR) : 0;
    if (status & NOT_KEPT) note.pc = last_return(frame);
    if (status & NOT_KEPT || (protection && below_stack(protection)) || (bus && below_stack(bus)))
        set_note("crash", "the stack overflowed", protection | bus);
    else if (status & 1 << 16 || status & 1 << 19) set_note("instruction", "an instruction that the processor does not have", 0);
    else if (status & 1 << 17) set_note("trap", "a jump to code that is not Thumb code", 0);
    else if (status & 1 << 8 || status & 1) set_note("trap", "no instructions are there", 0);
    else if (status & 1 << 24) set_note("trap", "an access that is not aligned", 0);
    else if (status & 1 << 25) set_note("trap", "a division by zero", 0);
    else if (status & 1 << 1 && bare_trespass(protection)) set_note("out_of_bounds", BARE_NOT_ITS_OWN, protection);
    else set_note("trap", "an access to what is not there, or is not the program's", protection | bus);
    set_register(CFSR, status);
}
#else
static void explain(uint32_t frame) { (void)frame, note.kind = "trap", note.why = "a fault", note.where = 0; }
#endif

/* Notes what happened, and goes back to thread mode on a fresh stack, into `after_trap`. */
__attribute__((used)) void thumb_trapped(uint32_t frame, uint32_t exception) {
    note.pc = in_memory(frame) ? ((const uint32_t *)(uintptr_t)frame)[6] : 0;
    if (exception >= 15) note.kind = "timeout", note.why = bare_too_long(), note.where = 0;
    else explain(frame);
    watchdog_stop();
    uint32_t *fresh = (uint32_t *)(uintptr_t)ansor_stack_top - 8;
    fresh[5] = 0, fresh[6] = (uint32_t)(uintptr_t)after_trap & ~1u, fresh[7] = 1u << 24;
    __asm__ volatile("msr control, %2\n msr psp, %0\n dsb\n bx %1" ::"r"(fresh), "r"(0xfffffffdu), "r"(0u) : "memory");
    __builtin_unreachable();
}

void start_counting(void) {
#ifdef BOARD_SETUP
    BOARD_SETUP
#endif
}

#if BOARD_COUNTER_BITS == 64
uint64_t counter_now(void) {
    uint32_t high, low;
    do high = register_at(BOARD_COUNTER_REGISTER + 4), low = register_at(BOARD_COUNTER_REGISTER);
    while (high != register_at(BOARD_COUNTER_REGISTER + 4));
    return (uint64_t)high << 32 | low;
}
#else
uint64_t counter_now(void) {
    static uint64_t total BARE_CHANGING;
    static uint32_t last BARE_CHANGING;
    uint32_t now = register_at(BOARD_COUNTER_REGISTER);
#ifdef BOARD_COUNTER_DOWN
    now = 0u - now;
#endif
    total += (now - last) << (32 - BOARD_COUNTER_BITS) >> (32 - BOARD_COUNTER_BITS);
    last = now;
    return total;
}
#endif

__attribute__((noinline)) void known_passes(uint32_t passes) { __asm__ volatile("1: subs %0, %0, #1\n bne 1b\n" : "+l"(passes)::"cc"); }

/* A timer that interrupts once, after so many ticks. */
#if defined(BOARD_WATCHDOG_CMSDK)
#define TIMER BOARD_WATCHDOG_CMSDK
static void timer_start(uint64_t ticks) {
    const uint32_t value = ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
    set_register(TIMER, 0);
    set_register(TIMER + 8, value); /* first: it sets the other, too */
    set_register(TIMER + 4, value);
    set_register(TIMER, 1 | 8);
}

static void timer_stop(void) { set_register(TIMER, 0), set_register(TIMER + 12, 1); }
#elif defined(BOARD_WATCHDOG_SSE) /* compares with the system counter, which counts already */
#define TIMER BOARD_WATCHDOG_SSE
static void timer_start(uint64_t ticks) {
    uint32_t high, low;
    do high = register_at(TIMER + 4), low = register_at(TIMER);
    while (high != register_at(TIMER + 4));
    const uint64_t end = ((uint64_t)high << 32 | low) + ticks;
    set_register(TIMER + 0x20, (uint32_t)end);
    set_register(TIMER + 0x24, (uint32_t)(end >> 32));
    set_register(TIMER + 0x2c, 1);
}

static void timer_stop(void) { set_register(TIMER + 0x2c, 0); }
#elif defined(BOARD_WATCHDOG_STM32)
#define TIMER BOARD_WATCHDOG_STM32
static void timer_start(uint64_t ticks) {
    set_register(TIMER + 0x2c, ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks);
    set_register(TIMER + 0x14, 1); /* from 0 on */
    set_register(TIMER + 0x10, 0);
    set_register(TIMER + 0x0c, 1);
    set_register(TIMER, 1);
}

static void timer_stop(void) { set_register(TIMER, 0), set_register(TIMER + 0x0c, 0), set_register(TIMER + 0x10, 0); }
#endif

#ifdef TIMER
void watchdog_start(uint64_t ticks) {
    timer_start(ticks);
    set_register(NVIC_ENABLE + BOARD_WATCHDOG_LINE / 32 * 4, 1u << BOARD_WATCHDOG_LINE % 32);
}

void watchdog_stop(void) {
    timer_stop();
    set_register(NVIC_DISABLE + BOARD_WATCHDOG_LINE / 32 * 4, 1u << BOARD_WATCHDOG_LINE % 32);
    set_register(NVIC_UNPEND + BOARD_WATCHDOG_LINE / 32 * 4, 1u << BOARD_WATCHDOG_LINE % 32);
}
#else
void watchdog_start(uint64_t ticks) { (void)ticks; }
void watchdog_stop(void) {}
#endif

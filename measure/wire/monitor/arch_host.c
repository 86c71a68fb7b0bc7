/* The monitor as a process: its traps are signals, and an alarm ends programs that do not end. */
#define _GNU_SOURCE
#include "arch.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

sigjmp_buf arch_here;
volatile uint8_t arch_armed;
volatile uint32_t arch_cause;
volatile uintptr_t arch_pc;

static char spare[1 << 16]; /* the stack of signal handlers: a program's stack pointer may be anything */
static char fresh[1 << 16] __attribute__((aligned(16)));

static uintptr_t place(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
    return (void)context, 0;
#endif
}

static void trapped(int signal, siginfo_t *info, void *context)
{
    (void)info;
    if (!arch_armed) {
        if (signal == SIGALRM) return;
        struct sigaction usual = {.sa_handler = SIG_DFL};
        sigaction(signal, &usual, NULL); /* a fault of the monitor itself: it recurs */
        return;
    }
    arch_armed = 0;
    arch_cause = (uint32_t)signal;
    arch_pc = place(context);
    siglongjmp(arch_here, signal == SIGALRM ? CAME_TIMEOUT : CAME_TRAP);
}

void arch_setup(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM};
    stack_t stack = {.ss_sp = spare, .ss_size = sizeof spare};
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
}

static void alarm_in(uint32_t milliseconds)
{
    struct itimerval timer = {.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

void arch_after(void)
{
    arch_armed = 0;
    alarm_in(0);
}

void arch_barrier(void) { __sync_synchronize(); }

static void back(void)
{
    arch_armed = 0;
    siglongjmp(arch_here, CAME_STOP);
}

unsigned arch_jump(uint8_t code[16], uintptr_t at)
{
    uintptr_t target = (uintptr_t)back;
    (void)at;
#if defined(__x86_64__)
    static const uint8_t text[] = {0x48, 0x83, 0xE4, 0xF0, 0x48, 0xB8}; /* and rsp, -16; mov rax, ... */
    memcpy(code, text, 6);
    memcpy(code + 6, &target, 8);
    memcpy(code + 14, "\xFF\xE0", 2); /* jmp rax */
#elif defined(__aarch64__)
    static const uint32_t text[] = {0x58000050, 0xD61F0200}; /* ldr x16, #8; br x16 */
    memcpy(code, text, 8);
    memcpy(code + 8, &target, 8);
#else
    return 0;
#endif
    return 16;
}

void arch_run(uintptr_t entry, uint32_t milliseconds)
{
    alarm_in(milliseconds ? milliseconds : 1);
    __builtin___clear_cache((char *)entry, (char *)entry + 16);
#if defined(__x86_64__)
    __asm__ volatile("mov %0, %%rsp\n\tpush $0\n\tjmp *%1" ::"r"(fresh + sizeof fresh), "r"(entry) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov sp, %0\n\tbr %1" ::"r"(fresh + sizeof fresh), "r"(entry) : "memory");
#endif
    __builtin_unreachable();
}

/* Where text goes when nobody reads the memory, and how the machine ends then: Spike's two words, a UART that is polled, or nothing. */
#ifndef ANSOR_CONSOLE_H
#define ANSOR_CONSOLE_H

#include "registers.h"

#ifdef BOARD_CONSOLE_HTIF /* of Spike: a byte is written to device 1, and taken when the word is 0 again */
typedef union { uint64_t whole; uint32_t halves[2]; } host_word;
volatile host_word tohost __attribute__((section(".tohost"), used, aligned(64)));
volatile host_word fromhost __attribute__((section(".tohost"), used, aligned(64)));

static void tell(volatile host_word *word, uint32_t high, uint32_t low) {
#if __SIZEOF_POINTER__ == 4 /* QEMU takes the word when its upper half is written */
    word->halves[0] = low;
    word->halves[1] = high;
#else
    word->whole = (uint64_t)high << 32 | low;
#endif
}

#ifdef BOARD_CONSOLE_CALLS /* Spike may look between two halves of a word, so the host is called, by the address of what it is asked: write(1, text, size) */
#define CONSOLE_WRITES
static volatile uint64_t host_call[8] __attribute__((section(".tohost"), used, aligned(64)));

static void console_write(const char *text, uintptr_t size) {
    host_call[0] = 64, host_call[1] = 1, host_call[2] = (uintptr_t)text, host_call[3] = size;
    __asm__ volatile("" ::: "memory");
    tohost.halves[0] = (uint32_t)(uintptr_t)host_call;
    while (!fromhost.halves[0]) {}
    fromhost.halves[0] = 0;
}
#else
static void console_put(char byte) {
    while (tohost.whole) tell(&fromhost, 0, 0);
    tell(&tohost, UINT32_C(1) << 24 | UINT32_C(1) << 16, (unsigned char)byte);
    while (tohost.whole) tell(&fromhost, 0, 0);
}
#endif

static void machine_end(void) {
    for (;;) tell(&tohost, 0, 1);
}
#elif defined(BOARD_CONSOLE_DATA)
static void console_put(char byte) {
    while ((*(volatile BOARD_CONSOLE_WORD *)(BOARD_CONSOLE_STATUS) & BOARD_CONSOLE_MASK) != BOARD_CONSOLE_READY) {}
    *(volatile BOARD_CONSOLE_WORD *)(BOARD_CONSOLE_DATA) = (unsigned char)byte;
}
#else
static void console_put(char byte) { (void)byte; }
#endif

#ifndef CONSOLE_WRITES
static void console_write(const char *text, uintptr_t size) {
    for (uintptr_t i = 0; i < size; ++i) console_put(text[i]);
}
#endif

#if defined(BOARD_END_SEMIHOSTING)
static void machine_end(void) { /* SYS_EXIT, "the application ended" */
    register uint32_t call __asm__("r0") = 0x18, why __asm__("r1") = 0x20026;
    __asm__ volatile("bkpt 0xab" ::"r"(call), "r"(why) : "memory");
}
#elif defined(BOARD_END_REGISTER)
static void machine_end(void) { set_register(BOARD_END_REGISTER, BOARD_END_VALUE); }
#elif !defined(BOARD_CONSOLE_HTIF)
static void machine_end(void) {}
#endif

#endif

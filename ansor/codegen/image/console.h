/* Where text goes when nobody reads the memory, and how the machine ends then: Spike's two words, a UART that is polled, or nothing. */
#ifndef ANSOR_CONSOLE_H
#define ANSOR_CONSOLE_H

#include "registers.h"

#ifdef BOARD_CONSOLE_HTIF /* of Spike: a byte is written to device 1, and taken when the word is 0 again */
volatile uint64_t tohost __attribute__((section(".tohost"), used, aligned(64)));
volatile uint64_t fromhost __attribute__((section(".tohost"), used, aligned(64)));

static void console_put(char byte) {
    while (tohost) fromhost = 0;
    tohost = UINT64_C(1) << 56 | UINT64_C(1) << 48 | (unsigned char)byte;
    while (tohost) fromhost = 0;
}

static void machine_end(void) {
    for (;;) tohost = 1;
}
#elif defined(BOARD_CONSOLE_DATA)
static void console_put(char byte) {
    while ((*(volatile BOARD_CONSOLE_WORD *)(BOARD_CONSOLE_STATUS) & BOARD_CONSOLE_MASK) != BOARD_CONSOLE_READY) {}
    *(volatile BOARD_CONSOLE_WORD *)(BOARD_CONSOLE_DATA) = (unsigned char)byte;
}
#else
static void console_put(char byte) { (void)byte; }
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

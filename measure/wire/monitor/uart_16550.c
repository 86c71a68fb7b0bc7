/* 16550 and compatible UARTs. UART: address; UART_STEP: bytes from register to register; UART_DIVISOR: clock divisor for the line speed, 0 to keep it.
 * RESET_AT, RESET_WORD: writing the word to this address resets the board. */
#include "bare.h"

#ifndef UART_STEP
#define UART_STEP 1
#endif
#ifndef UART_DIVISOR
#define UART_DIVISOR 0
#endif
#define PORT(number) BYTE_REGISTER(UART + (number) * UART_STEP)

void monitor_setup(void)
{
    PORT(1) = 0; /* no interrupts */
    if (UART_DIVISOR) {
        PORT(3) = 0x83;
        PORT(0) = (uint8_t)UART_DIVISOR;
        PORT(1) = (uint8_t)(UART_DIVISOR >> 8);
    }
    PORT(3) = 3; /* 8 bits, no parity */
    PORT(2) = 7; /* FIFOs on, and empty */
}

int monitor_getc(void) { return PORT(5) & 1 ? PORT(0) : -1; }

int monitor_putc(int byte)
{
    if (!(PORT(5) & 0x20)) return 0;
    PORT(0) = (uint8_t)byte;
    return 1;
}

uint32_t monitor_now(void)
{
    uint32_t count;
    __asm__ volatile("csrr %0, mcycle" : "=r"(count));
    return count;
}

void monitor_reset(void)
{
#ifdef RESET_AT
    REGISTER(RESET_AT) = RESET_WORD;
    for (;;) {
    }
#endif
}

#ifdef RESET_AT
FACTS(BOARD_RESETS)
#else
FACTS(0)
#endif

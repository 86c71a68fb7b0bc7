/* RP2040: UART0 on pins 0 and 1. CLOCK: its clock in Hz (the ring oscillator has about 6 MHz). BAUD: bits per second.
 * Started by a loader, or in RAM through the debug port. */
#include "cortex_m.h"

#ifndef BAUD
#define BAUD 115200
#endif

enum { RESETS = 0x4000C000, CLOCKS = 0x40008000, PINS = 0x40014000, UART0 = 0x40034000, CLEAR = 0x3000 };

void monitor_setup(void)
{
    uint32_t wanted = 1u << 22 | 1u << 5; /* UART0, IO_BANK0 */
    uint32_t divisor = (CLOCK * 4u + BAUD / 2) / BAUD;
    REGISTER(RESETS + CLEAR) = wanted;
    while ((REGISTER(RESETS + 8) & wanted) != wanted) {
    }
    REGISTER(CLOCKS + 0x48) = 0x800; /* clk_peri from clk_sys */
    REGISTER(PINS + 4) = 2;
    REGISTER(PINS + 12) = 2;
    REGISTER(UART0 + 0x24) = divisor >> 6;
    REGISTER(UART0 + 0x28) = divisor & 63;
    REGISTER(UART0 + 0x2C) = 0x70; /* 8 bits, FIFOs on */
    REGISTER(UART0 + 0x30) = 0x301;
    start_clock();
}

int monitor_getc(void) { return REGISTER(UART0 + 0x18) & 0x10 ? -1 : (int)(REGISTER(UART0) & 0xFF); }

int monitor_putc(int byte)
{
    if (REGISTER(UART0 + 0x18) & 0x20) return 0;
    REGISTER(UART0) = (uint32_t)byte;
    return 1;
}

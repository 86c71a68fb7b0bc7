/* STM32F4: USART2 on PA2 and PA3, which is the USB line of Nucleo boards. CLOCK: of the bus, in Hz (16 MHz after a reset). BAUD: bits per second. */
#include "cortex_m.h"

#ifndef BAUD
#define BAUD 115200
#endif

enum { RCC = 0x40023800, GPIOA = 0x40020000, USART2 = 0x40004400 };

void monitor_setup(void)
{
    REGISTER(RCC + 0x30) |= 1;                                            /* clock of port A */
    REGISTER(RCC + 0x40) |= 1u << 17;                                     /* clock of USART2 */
    REGISTER(GPIOA) = (REGISTER(GPIOA) & ~0xF0u) | 0xA0;                  /* PA2, PA3: alternate function ... */
    REGISTER(GPIOA + 0x20) = (REGISTER(GPIOA + 0x20) & ~0xFF00u) | 0x7700; /* ... 7 */
    REGISTER(USART2 + 8) = (CLOCK + BAUD / 2) / BAUD;
    REGISTER(USART2 + 12) = 0x200C; /* on, both directions */
    start_clock();
}

int monitor_getc(void) { return REGISTER(USART2) & 0x28 ? (int)(REGISTER(USART2 + 4) & 0xFF) : -1; } /* a byte was received, or overrun */

int monitor_putc(int byte)
{
    if (!(REGISTER(USART2) & 0x80)) return 0;
    REGISTER(USART2 + 4) = (uint32_t)byte;
    return 1;
}

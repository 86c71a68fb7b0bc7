/* The UART of ARM's CMSDK, as on MPS2 boards. UART: address; DIVISOR: clock divisor, by default for a clock of 25 MHz. */
#include "cortex_m.h"

#ifndef DIVISOR
#define DIVISOR 217 /* 25 MHz / 115,200 */
#endif

void monitor_setup(void)
{
    REGISTER(UART + 16) = DIVISOR;
    REGISTER(UART + 8) = 3; /* both directions, no interrupts */
    start_clock();
}

int monitor_getc(void) { return REGISTER(UART + 4) & 2 ? (int)(REGISTER(UART) & 0xFF) : -1; }

int monitor_putc(int byte)
{
    if (REGISTER(UART + 4) & 1) return 0;
    REGISTER(UART) = (uint32_t)byte;
    return 1;
}

/* nRF51 and nRF52: the UART without DMA, 115,200 bits per second. TX_PIN, RX_PIN: pins of port 0. */
#include "cortex_m.h"

enum { UART0 = 0x40002000 };

static uint8_t sending;

void monitor_setup(void)
{
    REGISTER(0x50000508) = 1u << TX_PIN; /* set the pin high and make it an output */
    REGISTER(0x50000518) = 1u << TX_PIN;
    REGISTER(UART0 + 0x50C) = TX_PIN;
    REGISTER(UART0 + 0x514) = RX_PIN;
    REGISTER(UART0 + 0x524) = 0x01D7E000;
    REGISTER(UART0 + 0x500) = 4;
    REGISTER(UART0 + 0x000) = 1; /* receive */
    REGISTER(UART0 + 0x008) = 1; /* send */
    sending = 0;
    start_clock();
}

int monitor_getc(void)
{
    if (!REGISTER(UART0 + 0x108)) return -1;
    REGISTER(UART0 + 0x108) = 0;
    return (int)(REGISTER(UART0 + 0x518) & 0xFF);
}

int monitor_putc(int byte)
{
    if (sending && !REGISTER(UART0 + 0x11C)) return 0;
    REGISTER(UART0 + 0x11C) = 0;
    REGISTER(UART0 + 0x51C) = (uint32_t)byte;
    sending = 1;
    return 1;
}

/* Common to all Cortex-M cores: a reset, and a timer that counts down. */
#ifndef CORTEX_M_H
#define CORTEX_M_H

#include "bare.h"

static inline void start_clock(void)
{
    REGISTER(0xE000E014) = 0xFFFFFF;
    REGISTER(0xE000E010) = 5;
}

uint32_t monitor_now(void) { return REGISTER(0xE000E018); }

void monitor_reset(void)
{
    __asm__ volatile("dsb");
    REGISTER(0xE000ED0C) = 0x05FA0004;
    for (;;) {
    }
}

FACTS(BOARD_RESETS)

#endif

/* Common to boards without an operating system: device registers, and the memory as the linker script defines it. */
#ifndef BARE_H
#define BARE_H

#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define BYTE_REGISTER(address) (*(volatile uint8_t *)(uintptr_t)(address))

extern char free_start[], free_end[]; /* from the linker script */

#define FACTS(abilities)                                                                                             \
    const struct board_facts *monitor_facts(void)                                                                    \
    {                                                                                                                \
        static const struct board_facts facts = {BOARD_NAME, free_start, free_end, abilities};                      \
        return &facts;                                                                                               \
    }

#endif

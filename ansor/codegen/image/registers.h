/* Words at addresses: registers of a board, and its memory. */
#ifndef ANSOR_REGISTERS_H
#define ANSOR_REGISTERS_H

#include <stdint.h>

static inline uint32_t register_at(uintptr_t address) { return *(volatile uint32_t *)address; }
static inline void set_register(uintptr_t address, uint32_t value) { *(volatile uint32_t *)address = value; }

#endif

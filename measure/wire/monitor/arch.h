/* What the monitor takes from a processor: a way back out of code that may fault, and one out of programs. */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

enum { CAME_STOP = 1, CAME_TRAP = 2, CAME_TIMEOUT = 3 };

#ifdef MONITOR_HOSTED
#include <setjmp.h>
extern sigjmp_buf arch_here;
#define arch_save() sigsetjmp(arch_here, 1)
#else
int arch_save(void) __attribute__((returns_twice)); /* 0; then once more, with what it came by, when a fault or a program ends */
#endif

extern volatile uint8_t arch_armed; /* whether arch_save's place is still there */
extern volatile uint32_t arch_cause; /* what the processor says of the last trap */
extern volatile uintptr_t arch_pc;   /* where it was; 0 where nobody knows */

void arch_setup(void);                                            /* traps, from now on */
void arch_after(void);                                            /* the processor is the monitor's again: no interrupts, its own traps */
void arch_barrier(void);                                          /* what was written is there, for loads, for code and for faults */
unsigned arch_jump(uint8_t code[16], uintptr_t at);               /* writes a jump back into the monitor, to be put at that address. Its bytes; 0: too far */
void arch_run(uintptr_t entry, uint32_t milliseconds);            /* does not come back here */

#endif

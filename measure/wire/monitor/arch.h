/* What the monitor needs of a processor: a way to return from code that may fault, and from programs. */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

enum { CAME_STOP = 1, CAME_TRAP = 2, CAME_TIMEOUT = 3 };

#ifdef MONITOR_HOSTED
#include <setjmp.h>
extern sigjmp_buf arch_here;
#define arch_save() sigsetjmp(arch_here, 1)
#else
int arch_save(void) __attribute__((returns_twice)); /* returns 0; then again, with one of CAME_..., after a fault or the end of a program */
#endif

extern volatile uint8_t arch_armed; /* whether a trap may return to arch_save */
extern volatile uint32_t arch_cause; /* cause of the last trap, as the processor reports it */
extern volatile uintptr_t arch_pc;   /* its address; 0 if unknown */

void arch_setup(void);                                            /* takes traps from now on */
void arch_after(void);                                            /* gives the processor back to the monitor: no interrupts, its own traps */
void arch_barrier(void);                                          /* makes writes visible to loads and instruction fetches, and lets their faults arrive */
unsigned arch_jump(uint8_t code[16], uintptr_t at);               /* makes a jump back into the monitor, for that address; returns its bytes, 0: too far */
void arch_run(uintptr_t entry, uint32_t milliseconds);            /* does not return */

#endif

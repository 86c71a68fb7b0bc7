/* The monitor: a small program that stays on a board and lets a host read memory, write it and run what is there, over a line of bytes.
 * docs/wires.md has its frames. A board gives it the functions below; `arch.h` is what it takes from a processor. */
#ifndef MONITOR_H
#define MONITOR_H

#include <stdint.h>

#ifndef MONITOR_CHUNK
#define MONITOR_CHUNK 512 /* bytes of memory in one frame */
#endif
#ifndef MONITOR_RING
#define MONITOR_RING 2048 /* bytes of frames that may come while others are worked on; a power of two */
#endif

enum { BOARD_RESETS = 1, BOARD_HALTS = 2 };

struct board_facts {
    const char *name;
    const void *ram_start, *ram_end; /* what is free for programs */
    uint8_t abilities;            /* BOARD_RESETS: monitor_reset works. BOARD_HALTS: arch_run ends when its time is up */
};

void monitor_setup(void);            /* makes the line ready */
int monitor_getc(void);              /* a byte that came, or -1 */
int monitor_putc(int byte);          /* 1: it goes out. 0: there is no room for it yet */
uint32_t monitor_now(void);          /* a clock of any speed: two starts should not see the same */
void monitor_reset(void);            /* starts the board anew; comes back where it cannot */
const struct board_facts *monitor_facts(void);

void monitor_start(void);            /* forgets everything */
void monitor_step(void);             /* works on what has come */
void monitor_main(void);             /* monitor_setup, then both for ever */

#ifdef MONITOR_HOSTED /* where there is an operating system */
void monitor_wait(void);             /* until something comes */
void monitor_flush(void);            /* a frame is complete */
#else
#define monitor_wait() ((void)0)
#define monitor_flush() ((void)0)
#endif

#endif

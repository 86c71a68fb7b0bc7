/* What a board gives the monitor: a line of bytes, and facts. */
#ifndef MONITOR_BOARD_H
#define MONITOR_BOARD_H

#include <stdint.h>

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

#ifdef MONITOR_HOSTED /* where there is an operating system */
void monitor_wait(void);             /* until something comes */
void monitor_flush(void);            /* a frame is complete */
#else
#define monitor_wait() ((void)0)
#define monitor_flush() ((void)0)
#endif

#endif

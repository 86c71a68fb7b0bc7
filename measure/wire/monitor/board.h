/* What a board provides for the monitor: a byte stream, and facts. */
#ifndef MONITOR_BOARD_H
#define MONITOR_BOARD_H

#include <stdint.h>

enum { BOARD_RESETS = 1, BOARD_HALTS = 2 };

struct board_facts {
    const char *name;
    const void *ram_start, *ram_end; /* free for programs */
    uint8_t abilities;            /* BOARD_RESETS: monitor_reset works. BOARD_HALTS: arch_run ends programs whose time is up */
};

void monitor_setup(void);            /* initialises the line */
int monitor_getc(void);              /* a received byte, or -1 */
int monitor_putc(int byte);          /* 1: the byte is sent. 0: there is no room for it yet */
uint32_t monitor_now(void);          /* a clock of any rate: it should differ between two starts */
void monitor_reset(void);            /* restarts the board; returns if it cannot */
const struct board_facts *monitor_facts(void);

#ifdef MONITOR_HOSTED /* with an operating system */
void monitor_wait(void);             /* waits until a byte comes */
void monitor_flush(void);            /* sends a complete frame */
#else
#define monitor_wait() ((void)0)
#define monitor_flush() ((void)0)
#endif

#endif

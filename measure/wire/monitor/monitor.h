/* The monitor: a small program that stays on a board and lets a host read memory, write it and run what is there, over a line of bytes.
 * docs/wires.md has its frames. `board.h` is what it takes from a board, `arch.h` what it takes from a processor. */
#ifndef MONITOR_H
#define MONITOR_H

#ifndef MONITOR_CHUNK
#define MONITOR_CHUNK 512 /* bytes of memory in one frame */
#endif
#ifndef MONITOR_RING
#define MONITOR_RING 2048 /* bytes of frames that may come while others are worked on; a power of two */
#endif

void monitor_start(void);            /* forgets everything */
void monitor_step(void);             /* works on what has come */
void monitor_main(void);             /* monitor_setup, then both for ever */

#endif

/* The monitor: a small resident program on a board. Over a byte stream, a host reads memory, writes it and runs programs in it.
 * docs/wires.md describes its frames. `board.h` is what it needs of a board, `arch.h` what it needs of a processor. */
#ifndef MONITOR_H
#define MONITOR_H

#ifndef MONITOR_CHUNK
#define MONITOR_CHUNK 512 /* bytes of memory in one frame */
#endif
#ifndef MONITOR_RING
#define MONITOR_RING 2048 /* bytes of frames that may arrive while others are processed; a power of two */
#endif

void monitor_start(void);            /* forgets everything */
void monitor_step(void);             /* processes the received bytes */
void monitor_main(void);             /* calls monitor_setup and monitor_start, then monitor_step for ever */

#endif

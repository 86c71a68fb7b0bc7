/* What the trial program takes from a system. `posix.c` has it for systems with files; a board without one brings its own. */
#ifndef ANSOR_TRIAL_SYSTEM_H
#define ANSOR_TRIAL_SYSTEM_H

#include "manifest.h"

#include <stddef.h>
#include <stdint.h>

/* Room for `size` bytes with `band` writable bytes on both sides, and beyond them what faults when touched, if there is such a thing; NULL for none.
 * `name` stands in the text of a fault there. */
void *system_room(uint64_t size, size_t band, const char *name);

/* Gives back the room that was taken last. A system that cannot does nothing. */
void system_leave_room(void);

/* The contents of a file and their size, or NULL. */
const void *system_file(const char *path, uint64_t *size);

/* Writes to a new file: begin, parts, end. 0 when it failed. */
int system_begin_file(const char *path);
int system_write_file(const void *bytes, uint64_t size);
int system_end_file(void);

/* What was sent to this program, at most `room` bytes; its length. */
size_t system_read(char *text, size_t room);

/* Sends text. */
void system_say(const char *text, size_t size);

/* Ends the program, well. */
void system_end(void);

/* Seconds: of all that goes on (wall), or of this program alone. */
double system_seconds(int wall);

/* Tells whoever counts instructions that this place is reached. */
void system_mark(int number);

/* Takes note of the memory around the buffers; later, what of it a candidate wrote to, or NULL. Systems that protect memory have nothing to say. */
void system_watch(void);
const char *system_trespass(void);

#ifdef TRIAL_APART
/* Calls a candidate where it may write to its buffers and its stack alone, and to no register of the machine. */
void system_call(void *const *args, unsigned char *workspace, trial_parallel_for loop, void *ctx, trial_entry entry);
#endif

/* A pool of threads and its parallel_for; NULL where there are none. */
void *system_pool(int threads, trial_parallel_for *parallel_for);

#endif

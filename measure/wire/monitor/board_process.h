/* Takes the command line of the process: megabytes of memory. Call it first. */
#ifndef BOARD_PROCESS_H
#define BOARD_PROCESS_H

void process_given(int count, char **given);

#endif

/* The words that a process was started with: megabytes of memory. Before anything else. */
#ifndef BOARD_PROCESS_H
#define BOARD_PROCESS_H

void process_given(int count, char **given);

#endif

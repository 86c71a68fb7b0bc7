/* A process as a board: it runs the monitor. */
#include "board_process.h"
#include "monitor.h"

int main(int count, char **given)
{
    process_given(count, given);
    monitor_main();
}

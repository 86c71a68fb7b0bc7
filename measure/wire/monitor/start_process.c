/* A process that is a board: the monitor runs in it. */
#include "board_process.h"
#include "monitor.h"

int main(int count, char **given)
{
    process_given(count, given);
    monitor_main();
}

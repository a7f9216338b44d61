/* main.c - the command `gimbal`. */
#include "common/base/process.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"

int main(int argc, char **argv)
{
    process_hold_standard();
    process_shim(argc, argv);
    int code = command_main(commands, argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gimbal: what was printed could not be written to stdout\n");
        return code == EXIT_DONE ? EXIT_IO : code;
    }
    return code;
}

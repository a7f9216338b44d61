/* version.c - `gimbal version` and `gimbal --version`. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/rpc/envelope.h"

static int run(const struct invocation *invocation, struct error *err)
{
    (void)err;
    enum output output = (enum output)invocation->common.output;
    if (output >= OUTPUT_JSON)
        output_print_object(
            output,
            resource_object("Version",
                            json_pack("{s:s, s:{s:i, s:i}}", "release", GIMBAL_VERSION, "protocol",
                                      "major", RPC_PROTOCOL_MAJOR, "minor", RPC_PROTOCOL_MINOR)),
            stdout);
    else
        printf("gimbal %s (protocol %d.%d)\n", GIMBAL_VERSION, RPC_PROTOCOL_MAJOR,
               RPC_PROTOCOL_MINOR);
    return EXIT_DONE;
}

const struct command command_version = {
    .name = "version",
    .summary = "Print the versions of the program and its protocol",
    .arguments = "",
    .takes = TAKES_OUTPUT,
    .run = run,
};

/* run.c - the program of ./dev bench rpc [FIGURE [SECONDS]]; runs all figures if none is named. */
#include "bench/rpc/rpc.h"

#include "common/base/memory.h"
#include "common/base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLEET_S 60

static const struct figure {
    const char *name;
    int (*run)(unsigned seconds);
} figures[] = {
    {"unary", figure_unary}, {"flight", figure_flight}, {"stream", figure_stream},
    {"held", figure_held},   {"fleet", figure_fleet},
};

static int run_alone(const struct figure *figure, unsigned seconds)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(figure->run(seconds));
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return fail(figure->name);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : FLEET_S;
    size_t count = 0;
    int status = EXIT_SUCCESS;
    process_keep_memory(); /* as the daemons do */
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (argc > 1 && strcmp(argv[1], figures[i].name) != 0)
            continue;
        count++;
        if (run_alone(&figures[i], seconds) != EXIT_SUCCESS)
            status = EXIT_FAILURE;
    }
    if (count == 0 || seconds == 0)
        return fail("figures: unary, flight, stream, held, fleet [SECONDS]");
    if (status == EXIT_SUCCESS)
        printf("bench rpc done\n");
    return status;
}

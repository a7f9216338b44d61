/* simulate.c - run simulated clusters from a shell: simulate [--big] [--trace] [--cell ROW
 * PHASE] SEED [COUNT]. */
#include "tests/simulation/matrix.h"
#include "tests/simulation/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
    fputs("usage: simulate [--big] [--trace] [--cell FAULT PHASE] SEED [COUNT]\n"
          "       simulate --cells\n"
          "Run COUNT (1) simulated clusters from SEED on, and stop at the first that goes wrong.\n"
          "  --big    1000 workers and 2 hours, in place of 8 to 32 and 10 minutes\n"
          "  --trace  print what happens\n"
          "  --cell   with one fault only, of the fault matrix\n"
          "  --cells  list those there are, FAULT PHASE a line\n",
          stderr);
    return 64;
}

static int list_cells(void)
{
    for (size_t row = 0; matrix_row_name(row); row++)
        for (unsigned column = 0; column < PHASES; column++)
            printf("%s %s\n", matrix_row_name(row), phase_name(column));
    return EXIT_SUCCESS;
}

/* False when there is no such cell. */
static bool find_cell(const char *fault, const char *phase, struct world_options *options)
{
    options->cell = true;
    while (matrix_row_name(options->row) && strcmp(matrix_row_name(options->row), fault) != 0)
        options->row++;
    while (options->column < PHASES && strcmp(phase_name(options->column), phase) != 0)
        options->column++;
    return matrix_row_name(options->row) && options->column < PHASES;
}

static void print(uint64_t seed, const struct tally *tally)
{
    printf("seed %" PRIu64 ": %" PRIu64 " events, %" PRIu64 " calls, %" PRIu64 " commits, %" PRIu64
           " coordinators, %" PRIu64 " submitted, %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64
           " cancelled, %" PRIu64 " waiting, %" PRIu64 " executors, %" PRIu64
           " epochs taken up by one that stayed, %" PRIu64 " that gave, %" PRIu64
           " that inherited, %" PRIu64 " that saved, %" PRIu64 " workers killed, %" PRIu64
           " struck, %" PRIu64 " steps by ranks, %" PRIu64 " cut off, %" PRIu64
           " impostors, %" PRIu64 " stale, storm of %" PRIu64 "\n",
           seed, tally->events, tally->calls, tally->commits, tally->coordinators, tally->submitted,
           tally->done, tally->failed, tally->cancelled, tally->waiting, tally->executors,
           tally->stayed, tally->gave, tally->inherited, tally->saved, tally->workers_killed,
           tally->struck, tally->applied, tally->cuts, tally->impostors, tally->stale,
           tally->storm_worst);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct world_options options = {0};
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--big") == 0)
            options.big = true;
        else if (strcmp(argv[at], "--trace") == 0)
            options.trace = true;
        else if (strcmp(argv[at], "--cells") == 0)
            return list_cells();
        else if (strcmp(argv[at], "--cell") == 0 && argc - at > 2 &&
                 find_cell(argv[at + 1], argv[at + 2], &options))
            at += 2;
        else
            return usage();
    }
    if (at >= argc || argc - at > 2)
        return usage();
    uint64_t seed = strtoull(argv[at], NULL, 10);
    uint64_t count = at + 1 < argc ? strtoull(argv[at + 1], NULL, 10) : 1;
    for (uint64_t i = 0; i < count; i++) {
        struct tally tally;
        options.seed = seed + i;
        simulate(&options, &tally);
        print(options.seed, &tally);
    }
    return EXIT_SUCCESS;
}

/* run.c - measures what it costs to be ready for a loss, and to have one. `run REPLANS RESTARTS`
 * kills that many times, by default 50 and 10 times; half of the first have copies. `run saves`
 * only measures checkpoints, `run survivors` only the plans for fewer devices. */
#include "bench/recovery/recovery.h"
#include "coordinator/cli/process.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    process_shim(argc, argv);
    bool saves = argc > 1 && strcmp(argv[1], "saves") == 0;
    bool survivors = argc > 1 && strcmp(argv[1], "survivors") == 0;
    if (saves || argc == 1)
        bench_saves();
    if (survivors || argc == 1)
        bench_survivors();
    if (!saves && !survivors)
        bench_kills(argc > 1 ? atoi(argv[1]) : 50, argc > 2 ? atoi(argv[2]) : 10);
    printf("bench recovery done\n");
    return EXIT_SUCCESS;
}

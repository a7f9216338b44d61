/* write_checkpoint.c - a checkpoint of the small model in a folder, as a random plan writes it:
 * write_checkpoint FOLDER SEED. */
#include "tests/worker/checkpoint/checkpoints.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct graph *graph;
    struct error err;
    if (argc != 3) {
        fprintf(stderr, "usage: write_checkpoint FOLDER SEED\n");
        return EXIT_FAILURE;
    }
    int rc = model_build(&checkpoints_model, ELEMENT_F32, &graph, &err);
    if (rc == 0) {
        struct plan *plan = engine_plan_random(graph, strtoull(argv[2], NULL, 10), 8, 8);
        rc = checkpoints_write(graph, plan, argv[1], &err);
        plan_destroy(plan);
        graph_destroy(graph);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

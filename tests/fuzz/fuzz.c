/* fuzz.c - libFuzzer over the target that GIMBAL_FUZZ names: ./dev fuzz. */
#include "tests/fuzz/targets.h"

#include <stdio.h>
#include <stdlib.h>

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("GIMBAL_FUZZ");
    (void)argc;
    (void)argv;
    target = name ? fuzz_target_find(name) : NULL;
    if (target)
        return 0;
    fprintf(stderr, "GIMBAL_FUZZ names no target; they are:\n");
    for (size_t i = 0; fuzz_target_at(i); i++)
        puts(fuzz_target_at(i)->name);
    exit(EXIT_FAILURE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    target->run(target, bytes, size);
    return 0;
}

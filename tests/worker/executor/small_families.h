/* small_families.h - one small model of each family that is trained on devices. */
#ifndef TESTS_WORKER_EXECUTOR_SMALL_FAMILIES_H
#define TESTS_WORKER_EXECUTOR_SMALL_FAMILIES_H

#include "common/models/model.h"

static const struct model_config families[] = {
    {.family = "gpt", .layers = 2, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48},
    {.family = "llama",
     .layers = 2,
     .hidden = 32,
     .heads = 8,
     .seq = 12,
     .vocab = 36,
     .ffn = 48,
     .kv_heads = 4},
    {.family = "bert", .layers = 2, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48},
};
#define FAMILIES (int)(sizeof families / sizeof *families)

#endif

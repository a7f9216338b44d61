/* outcome.c - memory that is mapped at once for all that may be taken of it: what is not taken
 * costs nothing. */
#include "tests/support/outcome.h"

#include "tests/support/counts.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

void *outcome_take(struct outcome *outcome, size_t count, size_t size)
{
    void *taken = (char *)outcome + outcome->used;
    outcome->used += (count * size + 15) / 16 * 16;
    assert(outcome->used <= outcome->size);
    return taken;
}

static size_t size_of(const struct graph *graph, int ranks)
{
    size_t size = sizeof(struct outcome) + 16 + (size_t)ranks * (2 * REGIONS + 3) * 16;
    for (size_t t = 0; t < graph->tensor_count; t++)
        size += 2 * ((size_t)count_tensor(graph, (int)t) * sizeof(float) + sizeof(float *) + 32);
    return size;
}

struct outcome *outcome_create(const struct graph *graph, int ranks)
{
    size_t size = size_of(graph, ranks), count = (size_t)ranks;
    struct outcome *outcome =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (outcome == MAP_FAILED)
        abort();
    outcome->size = size;
    outcome->used = (sizeof *outcome + 15) / 16 * 16;
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&outcome->lock, &shared);
    pthread_mutexattr_destroy(&shared);

    struct engine_result *result = &outcome->result;
    *result = (struct engine_result){.tensor_count = graph->tensor_count,
                                     .ranks = ranks,
                                     .memory = outcome,
                                     .memory_size = size};
    result->gradients = outcome_take(outcome, graph->tensor_count, sizeof *result->gradients);
    result->parameters = outcome_take(outcome, graph->tensor_count, sizeof *result->parameters);
    for (int region = 0; region < REGIONS; region++) {
        result->touched[region] = outcome_take(outcome, count, sizeof(uint64_t));
        result->reserved[region] = outcome_take(outcome, count, sizeof(uint64_t));
    }
    result->sent = outcome_take(outcome, count, sizeof *result->sent);
    result->words = outcome_take(outcome, count, sizeof *result->words);
    result->hashes = outcome_take(outcome, count, sizeof *result->hashes);
    return outcome;
}

void engine_result_finish(struct engine_result *result)
{
    if (result->memory)
        munmap(result->memory, result->memory_size);
    result->memory = NULL;
}

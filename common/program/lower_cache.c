/* lower_cache.c - what many lowerings share: hash tables of redistribution paths, by mesh and
 * shape, and of signatures, by dims and roles; and the memory of the last part's program. */
#include "common/program/lowering.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Compared with memcmp. */
struct path_key {
    const int *weights;
    int64_t size[DIMS_MAX];
    int32_t mesh[AXES_MAX], axes, uneven;
    char dim[DIMS_MAX + 1];
    struct placement from, to;
};

struct known_path {
    struct path_key key;
    struct step *steps;
    int count;
    struct known_path *next; /* with the same hash */
};

/* The arguments of signature_make(), as far as it depends on them; compared with memcmp. */
struct signature_key {
    const struct operation *operation;
    char dims[OPERANDS_MAX][8];
    const struct role *vector[AXES_MAX]; /* NULL beyond the last axis */
};

struct known_signature {
    struct signature_key key;
    struct signature signature;
    struct known_signature *next; /* with the same hash */
};

#define BUCKETS 4096
#define SIGNATURE_BUCKETS 1024

struct lower_cache {
    struct known_path *buckets[BUCKETS];
    struct known_signature *signatures[SIGNATURE_BUCKETS];
    struct program *spare; /* or NULL */
};

struct lower_cache *lower_cache_create(void)
{
    return xcalloc(1, sizeof(struct lower_cache));
}

void lower_cache_destroy(struct lower_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct known_path *known = cache->buckets[i], *next; known; known = next) {
            next = known->next;
            free(known->steps);
            free(known);
        }
    }
    for (size_t i = 0; i < SIGNATURE_BUCKETS; i++) {
        for (struct known_signature *known = cache->signatures[i], *next; known; known = next) {
            next = known->next;
            free(known);
        }
    }
    program_destroy(cache->spare);
    free(cache);
}

struct program *lower_cache_program(struct lower_cache *cache)
{
    struct program *spare = cache->spare, *program = xcalloc(1, sizeof *program);
    cache->spare = NULL;
    if (!spare)
        return program;
    for (size_t i = 0; i < spare->group_count; i++)
        free(spare->groups[i].ranks);
    *program = (struct program){
        .buffers = spare->buffers,
        .pieces = spare->pieces,
        .instructions = spare->instructions,
        .groups = spare->groups,
        .parameters = spare->parameters,
        .counts = spare->counts,
        .buffer_capacity = spare->buffer_capacity,
        .piece_capacity = spare->piece_capacity,
        .instruction_capacity = spare->instruction_capacity,
        .group_capacity = spare->group_capacity,
        .parameter_capacity = spare->parameter_capacity,
        .counts_capacity = spare->counts_capacity,
    };
    free(spare->waits);
    free(spare->events);
    free(spare);
    return program;
}

void lower_cache_return(struct lower_cache *cache, struct program *program)
{
    program_destroy(cache->spare);
    cache->spare = program;
}

int lower_cache_path(struct lower_cache *cache, const struct mesh *mesh, const struct shape *shape,
                     const struct placement *from, const struct placement *to,
                     const struct step **steps, struct error *err)
{
    if (placement_equal(from, to))
        return 0;
    struct path_key key;
    memset(&key, 0, sizeof key);
    key.weights = mesh->weights;
    key.axes = mesh->axes;
    key.uneven = shape->uneven;
    memcpy(key.mesh, mesh->size, (size_t)mesh->axes * sizeof *mesh->size);
    memcpy(key.size, shape->size, (size_t)shape->dims * sizeof *shape->size);
    memcpy(key.dim, shape->dim, (size_t)shape->dims);
    key.from = *from;
    key.to = *to;
    struct known_path **bucket =
        &cache->buckets[hash_words(HASH_START, &key, sizeof key) % BUCKETS];
    for (const struct known_path *known = *bucket; known; known = known->next)
        /* If padding differed, the path would only be searched once more.
         * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        if (memcmp(&known->key, &key, sizeof key) == 0) {
            *steps = known->steps;
            return known->count;
        }
    struct step found[STEPS_MAX];
    int count = redistribute_path(mesh, shape, from, to, found, err);
    if (count < 0)
        return count;
    struct known_path *known = xcalloc(1, sizeof *known);
    *known = (struct known_path){.key = key, .count = count, .next = *bucket};
    known->steps = xcalloc((size_t)count, sizeof *found);
    memcpy(known->steps, found, (size_t)count * sizeof *found);
    *bucket = known;
    *steps = known->steps;
    return count;
}

struct signature lower_cache_signature(struct lower_cache *cache, const struct node *node,
                                       const struct role *const *vector, int axes)
{
    struct signature_key key = {.operation = node->operation};
    for (int i = 0; i < operation_operands(node->operation); i++)
        strcpy(key.dims[i], node->dims[i]);
    memcpy(key.vector, vector, (size_t)axes * sizeof *vector);
    struct known_signature **bucket =
        &cache->signatures[hash_words(HASH_START, &key, sizeof key) % SIGNATURE_BUCKETS];
    for (const struct known_signature *known = *bucket; known; known = known->next)
        if (memcmp(&known->key, &key, sizeof key) == 0)
            return known->signature;
    struct known_signature *known = xcalloc(1, sizeof *known);
    *known = (struct known_signature){key, signature_make(node, vector, axes), *bucket};
    *bucket = known;
    return known->signature;
}

/* ways.c - a cache shared by many lowerings: hash tables of redistribution paths, by mesh and
 * shape, and of signatures, by dims and roles; and the memory of the last part's program. */
#include "common/program/lowering.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Compared with memcmp. */
struct way_key {
    const int *weights;
    int64_t size[DIMS_MAX];
    int32_t mesh[AXES_MAX], axes, uneven;
    char dim[DIMS_MAX + 1];
    struct placement from, to;
};

struct way {
    struct way_key key;
    struct step *steps;
    int count;
    struct way *next; /* with the same hash */
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

struct ways {
    struct way *buckets[BUCKETS];
    struct known_signature *signatures[SIGNATURE_BUCKETS];
    struct program *spare; /* or NULL */
};

struct ways *ways_create(void)
{
    return xcalloc(1, sizeof(struct ways));
}

void ways_destroy(struct ways *ways)
{
    if (!ways)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct way *way = ways->buckets[i], *next; way; way = next) {
            next = way->next;
            free(way->steps);
            free(way);
        }
    }
    for (size_t i = 0; i < SIGNATURE_BUCKETS; i++) {
        for (struct known_signature *known = ways->signatures[i], *next; known; known = next) {
            next = known->next;
            free(known);
        }
    }
    program_destroy(ways->spare);
    free(ways);
}

struct program *ways_program(struct ways *ways)
{
    struct program *spare = ways->spare, *program = xcalloc(1, sizeof *program);
    ways->spare = NULL;
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

void ways_give_back(struct ways *ways, struct program *program)
{
    program_destroy(ways->spare);
    ways->spare = program;
}

int ways_find(struct ways *ways, const struct mesh *mesh, const struct shape *shape,
              const struct placement *from, const struct placement *to, const struct step **steps,
              struct error *err)
{
    if (placement_equal(from, to))
        return 0;
    struct way_key key;
    memset(&key, 0, sizeof key);
    key.weights = mesh->weights;
    key.axes = mesh->axes;
    key.uneven = shape->uneven;
    memcpy(key.mesh, mesh->size, (size_t)mesh->axes * sizeof *mesh->size);
    memcpy(key.size, shape->size, (size_t)shape->dims * sizeof *shape->size);
    memcpy(key.dim, shape->dim, (size_t)shape->dims);
    key.from = *from;
    key.to = *to;
    struct way **bucket = &ways->buckets[hash_words(HASH_START, &key, sizeof key) % BUCKETS];
    for (const struct way *way = *bucket; way; way = way->next)
        /* If padding differed, the path would only be searched once more.
         * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        if (memcmp(&way->key, &key, sizeof key) == 0) {
            *steps = way->steps;
            return way->count;
        }
    struct step found[STEPS_MAX];
    int count = redistribute_path(mesh, shape, from, to, found, err);
    if (count < 0)
        return count;
    struct way *way = xcalloc(1, sizeof *way);
    *way = (struct way){.key = key, .count = count, .next = *bucket};
    way->steps = xcalloc((size_t)count, sizeof *found);
    memcpy(way->steps, found, (size_t)count * sizeof *found);
    *bucket = way;
    *steps = way->steps;
    return count;
}

struct signature ways_signature(struct ways *ways, const struct node *node,
                                const struct role *const *vector, int axes)
{
    struct signature_key key = {.operation = node->operation};
    for (int i = 0; i < operation_operands(node->operation); i++)
        strcpy(key.dims[i], node->dims[i]);
    memcpy(key.vector, vector, (size_t)axes * sizeof *vector);
    struct known_signature **bucket =
        &ways->signatures[hash_words(HASH_START, &key, sizeof key) % SIGNATURE_BUCKETS];
    for (const struct known_signature *known = *bucket; known; known = known->next)
        if (memcmp(&known->key, &key, sizeof key) == 0)
            return known->signature;
    struct known_signature *known = xcalloc(1, sizeof *known);
    *known = (struct known_signature){key, signature_make(node, vector, axes), *bucket};
    *bucket = known;
    return known->signature;
}

/* copies.c - slots of memory, and one message to the neighbour. */
#include "worker/move/copies.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/move/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Some slices of a rank's state, side by side, twice. */
struct store {
    int rank; /* whose they are */
    struct move_slice *slices[COPIES_SLOTS];
    size_t count;
    size_t elements;
    float *data[COPIES_SLOTS];
    struct move_age age[COPIES_SLOTS];
    bool has_metrics[COPIES_SLOTS];
    float metrics[COPIES_SLOTS][METRICS]; /* the same on all ranks */
    bool whole[COPIES_SLOTS];
};

struct copies {
    const struct collectives *collectives;
    struct fabric *fabric;
    int neighbour;
    int slot;             /* of the next copy */
    struct store own;     /* what this rank alone holds comes first */
    size_t sole_elements; /* ... and is so long */
    struct store *others; /* of the ranks whose neighbour this one is */
    size_t other_count;
};

/* The ranks that only give come behind them. */
static int trainers(const struct move *move)
{
    return move->config.program->ranks;
}

/* Whether the box of a rank's slice is not wholly on other nodes as well. */
static bool is_sole(const struct move *move, const char *const *nodes, int rank, int tensor)
{
    struct offer *elsewhere = xcalloc((size_t)trainers(move), sizeof *elsewhere);
    struct offered_state *states = xcalloc((size_t)trainers(move), sizeof *states);
    const struct target any = {0};
    for (int i = 0; i < trainers(move); i++) {
        states[i].slices = move->offers[i].wanted;
        elsewhere[i].states = &states[i];
        elsewhere[i].state_count = i != rank && strcmp(nodes[i], nodes[rank]) != 0;
    }
    elsewhere[rank].wanted = move->offers[rank].wanted;
    bool sole = parts_missing(elsewhere, trainers(move), rank, tensor, &any) > 0;
    free(states);
    free(elsewhere);
    return sole;
}

static int neighbour_of(const char *const *nodes, int ranks, int rank)
{
    for (int i = 1; i < ranks; i++)
        if (strcmp(nodes[(rank + i) % ranks], nodes[rank]) != 0)
            return (rank + i) % ranks;
    return (rank + 1) % ranks;
}

/* The slices of a rank, those that it alone holds first; all of them, or only those. */
static void list(struct store *store, const struct move *move, const char *const *nodes, int rank,
                 bool all, size_t *sole_elements)
{
    const struct slices *slices = &move->offers[rank].wanted;
    size_t tensors = move->config.graph->tensor_count;
    store->rank = rank;
    for (int slot = 0; slot < COPIES_SLOTS; slot++)
        store->slices[slot] = xcalloc(tensors, sizeof **store->slices);
    for (int sole = 1; sole >= (all ? 0 : 1); sole--) {
        for (size_t t = 0; t < tensors; t++) {
            if (!slices->there[t] || is_sole(move, nodes, rank, (int)t) != (sole == 1))
                continue;
            for (int slot = 0; slot < COPIES_SLOTS; slot++)
                store->slices[slot][store->count] =
                    (struct move_slice){.tensor = (int)t, .box = slices->boxes[t]};
            store->count++;
            store->elements += (size_t)box_count(&slices->boxes[t]) * CHECKPOINT_PARTS;
        }
        if (sole)
            *sole_elements = store->elements;
    }
}

static int reserve(struct store *store, struct error *err)
{
    for (int slot = 0; slot < COPIES_SLOTS; slot++) {
        char size[32];
        float *at = store->data[slot] = malloc(store->elements * sizeof *at + 1);
        if (!at)
            return error_set(
                err, -ENOBUFS, "no %s of memory for copies of state",
                units_print_bytes(size, sizeof size, (double)(store->elements * sizeof *at)));
        for (size_t i = 0; i < store->count; i++)
            for (int part = 0; part < CHECKPOINT_PARTS; part++) {
                store->slices[slot][i].parts[part] = at;
                at += box_count(&store->slices[slot][i].box);
            }
    }
    return 0;
}

static void store_finish(struct store *store)
{
    for (int slot = 0; slot < COPIES_SLOTS; slot++) {
        free(store->slices[slot]);
        free(store->data[slot]);
    }
}

static int find_others(struct copies *copies, const struct move *move, const char *const *nodes,
                       struct error *err)
{
    size_t ignored;
    int rc = 0;
    copies->others = xcalloc((size_t)trainers(move), sizeof *copies->others);
    for (int rank = 0; rank < trainers(move) && rc == 0; rank++) {
        if (rank == move->rank || neighbour_of(nodes, trainers(move), rank) != move->rank)
            continue;
        struct store *store = &copies->others[copies->other_count++];
        list(store, move, nodes, rank, false, &ignored);
        rc = reserve(store, err);
    }
    return rc;
}

static bool anybody_is_sole(const struct move *move, const char *const *nodes)
{
    size_t tensors = move->config.graph->tensor_count;
    for (int rank = 0; rank < trainers(move); rank++)
        for (size_t t = 0; t < tensors; t++)
            if (move->offers[rank].wanted.there[t] && is_sole(move, nodes, rank, (int)t))
                return true;
    return false;
}

int copies_create(const struct move *move, struct fabric *fabric, const char *const *nodes,
                  struct copies **out, struct error *err)
{
    *out = NULL;
    if (trainers(move) < 2 || !anybody_is_sole(move, nodes))
        return 0;
    struct copies *copies = xcalloc(1, sizeof *copies);
    copies->collectives = move->config.collectives;
    copies->fabric = fabric;
    copies->neighbour = neighbour_of(nodes, trainers(move), move->rank);
    list(&copies->own, move, nodes, move->rank, true, &copies->sole_elements);
    int rc = reserve(&copies->own, err);
    if (rc == 0)
        rc = find_others(copies, move, nodes, err);
    if (rc < 0) {
        copies_destroy(copies);
        return rc;
    }
    *out = copies;
    return 0;
}

static const struct move_slice *find(const struct move_slice *slices, int tensor)
{
    while (slices->tensor != tensor)
        slices++;
    return slices;
}

static void copy_own(struct copies *copies, const struct move_slice *state, int slot)
{
    for (size_t i = 0; i < copies->own.count; i++) {
        const struct move_slice *to = &copies->own.slices[slot][i];
        const struct move_slice *from = find(state, to->tensor);
        for (int part = 0; part < CHECKPOINT_PARTS; part++)
            memcpy(to->parts[part], from->parts[part],
                   (size_t)box_count(&to->box) * sizeof **to->parts);
    }
}

static int receive_others(struct copies *copies, int slot, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < copies->other_count && rc == 0; i++) {
        struct store *store = &copies->others[i];
        if (store->elements > 0)
            rc = copies->collectives->receive(copies->fabric, store->rank, MOVE_TAG_COPY,
                                              ELEMENT_F32, store->data[slot], store->elements, err);
    }
    return rc;
}

static void begin(struct store *store, int slot, const struct move_age *age, const float *metrics)
{
    store->whole[slot] = false;
    store->age[slot] = *age;
    store->has_metrics[slot] = metrics != NULL;
    if (metrics)
        memcpy(store->metrics[slot], metrics, sizeof store->metrics[slot]);
}

int copies_take(struct copies *copies, const struct move_slice *state, const struct move_age *age,
                const float *metrics, struct error *err)
{
    const struct collectives *c = copies->collectives;
    struct fabric_request *request = NULL;
    int slot = copies->slot, rc = 0;
    begin(&copies->own, slot, age, metrics);
    for (size_t i = 0; i < copies->other_count; i++)
        begin(&copies->others[i], slot, age, metrics);
    copy_own(copies, state, slot);
    copies->own.whole[slot] = true;
    if (copies->sole_elements > 0)
        rc = c->send(copies->fabric, copies->neighbour, MOVE_TAG_COPY, ELEMENT_F32,
                     copies->own.data[slot], copies->sole_elements, &request, err);
    if (rc == 0)
        rc = receive_others(copies, slot, err);
    if (rc == 0 && request)
        rc = c->wait(copies->fabric, request, err);
    if (rc < 0)
        return error_prefix(err, rc, "copy the state of step %llu", (unsigned long long)age->step);
    for (size_t i = 0; i < copies->other_count; i++)
        copies->others[i].whole[slot] = true;
    copies->slot = (slot + 1) % COPIES_SLOTS;
    return 0;
}

static size_t describe(const struct store *store, struct move_held *out)
{
    size_t count = 0;
    for (int slot = 0; slot < COPIES_SLOTS; slot++)
        if (store->whole[slot] && store->count > 0)
            out[count++] = (struct move_held){
                .slices = store->slices[slot],
                .slice_count = store->count,
                .age = store->age[slot],
                .metrics = store->has_metrics[slot] ? store->metrics[slot] : NULL};
    return count;
}

size_t copies_describe(const struct copies *copies, struct move_held *out)
{
    size_t count = describe(&copies->own, out);
    for (size_t i = 0; i < copies->other_count; i++)
        count += describe(&copies->others[i], out + count);
    return count;
}

size_t copies_room(const struct copies *copies)
{
    return COPIES_SLOTS * (1 + copies->other_count);
}

uint64_t copies_bytes(const struct copies *copies)
{
    uint64_t elements = copies->own.elements;
    for (size_t i = 0; i < copies->other_count; i++)
        elements += copies->others[i].elements;
    return elements * COPIES_SLOTS * sizeof(float);
}

void copies_destroy(struct copies *copies)
{
    if (!copies)
        return;
    store_finish(&copies->own);
    for (size_t i = 0; i < copies->other_count; i++)
        store_finish(&copies->others[i]);
    free(copies->others);
    free(copies);
}

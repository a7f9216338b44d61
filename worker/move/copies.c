/* copies.c - two holdings, messages to the neighbour, and a thread that sleeps until there is a
 * state to copy.
 *
 * Messages of the step that is under way may have to wait for one of these, on the same connection.
 * So what is sent is cut into parts that take no longer than such messages do. */
#include "worker/move/copies.h"

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/program/redundancy.h"
#include "worker/move/inventory.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PART_ELEMENTS (REDUNDANCY_MESSAGE_BYTES / sizeof(float))

/* Consecutive slices of one rank's state; first and count are elements of a slot's memory. */
struct batch {
    int rank; /* to whom they belong */
    size_t first, count;
};

struct copies {
    const struct collectives *collectives;
    struct fabric *fabric;
    int neighbour;
    struct holding *slots[COPIES_SLOTS];
    int slot;          /* index of the slot for the next copy */
    struct share *own; /* places of this rank's own slices in a slot; they come first */
    size_t own_count;
    struct batch sole;    /* of these, what only this rank holds; comes first */
    struct batch *others; /* of the ranks whose neighbour this rank is */
    size_t other_count;
    size_t elements; /* per slot */

    struct copies_source source;
    bool started; /* there is a thread, and what it needs */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool busy, stopping;
    struct standing standing; /* of the state that is being copied */
    int rc;                   /* of the copies that failed */
    struct error err;
};

/* The contents of a slot. */
struct listing {
    struct share *shares;
    size_t count, capacity, elements;
};

/* Number of ranks of the plan; ranks that only give come after them. */
static int trainers(const struct move *move)
{
    return move_config_of(move)->program->ranks;
}

static void add_slice(struct listing *listing, int tensor, const struct box *box)
{
    size_t count = (size_t)box_count(box);
    uint64_t slot_at = listing->elements * sizeof(float), bytes = count * sizeof(float);
    listing->shares =
        grow(listing->shares, listing->count, &listing->capacity, sizeof *listing->shares);
    listing->shares[listing->count++] = (struct share){.tensor = tensor,
                                                       .box = *box,
                                                       .master = slot_at,
                                                       .first = slot_at + bytes,
                                                       .second = slot_at + 2 * bytes};
    listing->elements += count * STATE_PARTS;
}

/* List the slices of a rank that only it holds (sole), or its others. */
static struct batch list_rank(struct listing *listing, const struct move *move,
                              const struct redundancy *soles, int rank, bool sole)
{
    const struct inventory_slices *slices = &move_inventory(move, rank)->wanted;
    size_t first = listing->elements;
    for (size_t t = 0; t < move_config_of(move)->graph->tensor_count; t++)
        if (slices->there[t] && redundancy_only_copy(soles, rank, (int)t) == sole)
            add_slice(listing, (int)t, &slices->boxes[t]);
    return (struct batch){rank, first, listing->elements - first};
}

static void list_all(struct copies *copies, struct listing *listing, const struct move *move,
                     const struct redundancy *soles)
{
    copies->sole = list_rank(listing, move, soles, move_config_of(move)->rank, true);
    list_rank(listing, move, soles, move_config_of(move)->rank, false);
    copies->own_count = listing->count;
    copies->others = xcalloc((size_t)trainers(move), sizeof *copies->others);
    for (int rank = 0; rank < trainers(move); rank++)
        if (rank != move_config_of(move)->rank &&
            redundancy_neighbour(soles, rank) == move_config_of(move)->rank)
            copies->others[copies->other_count++] = list_rank(listing, move, soles, rank, true);
    copies->elements = listing->elements;
}

static int reserve_slots(struct copies *copies, const struct copies_config *config,
                         const struct listing *listing, struct error *err)
{
    int rc = 0;
    for (int i = 0; i < COPIES_SLOTS && rc == 0; i++) {
        rc = holding_create(config->estate, HOLDING_COPY, listing->elements * sizeof(float),
                            listing->count, &copies->slots[i], err);
        if (rc == 0)
            holding_describe(copies->slots[i], listing->shares, config->epoch);
    }
    return rc < 0 ? error_prefix(err, rc, "copies of state") : 0;
}

static bool anybody_is_sole(const struct move *move, const struct redundancy *soles)
{
    size_t tensors = move_config_of(move)->graph->tensor_count;
    for (int rank = 0; rank < trainers(move); rank++)
        for (size_t t = 0; t < tensors; t++)
            if (move_inventory(move, rank)->wanted.there[t] &&
                redundancy_only_copy(soles, rank, (int)t))
                return true;
    return false;
}

static int create_needed(const struct move *move, const struct copies_config *config,
                         const struct redundancy *soles, struct copies **out, struct error *err)
{
    struct copies *copies = xcalloc(1, sizeof *copies);
    struct listing listing = {0};
    copies->collectives = move_config_of(move)->collectives;
    copies->fabric = config->fabric;
    copies->neighbour = redundancy_neighbour(soles, move_config_of(move)->rank);
    list_all(copies, &listing, move, soles);
    int rc = reserve_slots(copies, config, &listing, err);
    copies->own = listing.shares;
    if (rc < 0) {
        copies_destroy(copies);
        return rc;
    }
    *out = copies;
    return 0;
}

int copies_create(const struct move *move, const struct copies_config *config, struct copies **out,
                  struct error *err)
{
    struct redundancy soles;
    *out = NULL;
    int rc = redundancy_find(move_config_of(move)->graph, config->plan, config->nodes, &soles, err);
    if (rc == 0 && redundancy_matters(&soles, config->outlived) && anybody_is_sole(move, &soles))
        rc = create_needed(move, config, &soles, out, err);
    redundancy_finish(&soles);
    return rc;
}

static float *batch_start(const struct holding *slot, const struct batch *batch)
{
    return holding_at(slot, batch->first * sizeof(float));
}

static void copy_own(const struct copies *copies, const struct state_slice *state,
                     struct holding *slot)
{
    for (size_t i = 0; i < copies->own_count; i++) {
        const struct share *to = &copies->own[i];
        const struct state_slice *from = state_slices_find(state, to->tensor);
        const size_t bytes = (size_t)box_count(&to->box) * sizeof(float);
        memcpy(holding_at(slot, to->master), from->parts[STATE_WEIGHT], bytes);
        memcpy(holding_at(slot, to->first), from->parts[STATE_FIRST], bytes);
        memcpy(holding_at(slot, to->second), from->parts[STATE_SECOND], bytes);
    }
}

/* Part `index` of a batch; count 0: it has no such part. */
static struct batch part_of(const struct batch *batch, size_t index)
{
    size_t before = index * PART_ELEMENTS;
    size_t left = before < batch->count ? batch->count - before : 0;
    return (struct batch){batch->rank, batch->first + before,
                          left < PART_ELEMENTS ? left : PART_ELEMENTS};
}

static size_t parts_most(const struct copies *copies)
{
    size_t most = copies->sole.count;
    for (size_t i = 0; i < copies->other_count; i++)
        most = copies->others[i].count > most ? copies->others[i].count : most;
    return (most + PART_ELEMENTS - 1) / PART_ELEMENTS;
}

static int receive_part(const struct copies *copies, struct holding *slot, size_t index,
                        struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < copies->other_count && rc == 0; i++) {
        const struct batch part = part_of(&copies->others[i], index);
        if (part.count > 0)
            rc = copies->collectives->receive(copies->fabric, part.rank, MOVE_TAG_COPY, ELEMENT_F32,
                                              batch_start(slot, &part), part.count, err);
    }
    return rc;
}

/* The memory of a send must not change until its request has ended, however that ends. */
static int exchange_part(const struct copies *copies, struct holding *slot, size_t index,
                         struct error *err)
{
    const struct collectives *c = copies->collectives;
    const struct batch sole = part_of(&copies->sole, index);
    struct fabric_request *request = NULL;
    struct error ignored;
    int rc = 0, sent = 0;
    if (sole.count > 0)
        rc = c->send(copies->fabric, copies->neighbour, MOVE_TAG_COPY, ELEMENT_F32,
                     batch_start(slot, &sole), sole.count, &request, err);
    if (rc == 0)
        rc = receive_part(copies, slot, index, err);
    if (rc < 0 && request)
        c->abort(copies->fabric);
    if (request)
        sent = c->wait(copies->fabric, request, rc < 0 ? &ignored : err);
    return rc < 0 ? rc : sent;
}

int copies_take(struct copies *copies, const struct state_slice *state,
                const struct standing *standing, struct error *err)
{
    struct holding *slot = copies->slots[copies->slot];
    holding_withdraw(slot);
    copy_own(copies, state, slot);
    int rc = 0;
    for (size_t i = 0; i < parts_most(copies) && rc == 0; i++)
        rc = exchange_part(copies, slot, i, err);
    if (rc < 0)
        return error_prefix(err, rc, "copy the state of step %llu",
                            (unsigned long long)standing->step);
    holding_publish(slot, standing);
    copies->slot = (copies->slot + 1) % COPIES_SLOTS;
    return 0;
}

static uint64_t now_ms(void)
{
    return (uint64_t)(clock_s() * 1e3);
}

/* All ranks copy after the same steps, so in the trail this is one exchange of all of them. It is
 * numbered by the step, so that one of an earlier epoch is not taken for it. */
static void enter_copies(const struct copies *copies)
{
    const struct trail_call call = {
        .kind = TRAIL_EXCHANGES,
        .group = hash_number(HASH_START, TRAIL_COPIES),
        .number = copies->standing.step,
        .step = copies->standing.step,
        .entered_ms = now_ms(),
        .name = "copies of the state",
    };
    trail_enter(copies->source.trail, TRAIL_COPIES, &call);
}

static int copy_beside(struct copies *copies, struct error *err)
{
    const struct copies_source *source = &copies->source;
    enter_copies(copies);
    int rc = source->fetch_cb(source->context, err);
    if (rc == 0)
        rc = copies_take(copies, source->state, &copies->standing, err);
    trail_leave(source->trail, TRAIL_COPIES, now_ms());
    return rc;
}

static void *copies_run(void *context)
{
    struct copies *copies = context;
    pthread_mutex_lock(&copies->lock);
    for (;;) {
        while (!copies->busy && !copies->stopping)
            pthread_cond_wait(&copies->changed, &copies->lock);
        if (!copies->busy)
            break;
        pthread_mutex_unlock(&copies->lock);
        struct error err = {""};
        int rc = copy_beside(copies, &err);
        pthread_mutex_lock(&copies->lock);
        copies->rc = rc;
        copies->err = err;
        copies->busy = false;
        pthread_cond_broadcast(&copies->changed);
    }
    pthread_mutex_unlock(&copies->lock);
    return NULL;
}

int copies_start(struct copies *copies, const struct copies_source *source, struct error *err)
{
    copies->source = *source;
    pthread_mutex_init(&copies->lock, NULL);
    pthread_cond_init(&copies->changed, NULL);
    int rc = pthread_create(&copies->thread, NULL, copies_run, copies);
    copies->started = rc == 0;
    if (copies->started)
        return 0;
    pthread_cond_destroy(&copies->changed);
    pthread_mutex_destroy(&copies->lock);
    return error_set(err, -rc, "no thread for the copies of the state: %s", strerror(rc));
}

void copies_begin(struct copies *copies, const struct standing *standing)
{
    pthread_mutex_lock(&copies->lock);
    assert(!copies->busy && copies->rc == 0);
    copies->standing = *standing;
    copies->busy = true;
    pthread_cond_broadcast(&copies->changed);
    pthread_mutex_unlock(&copies->lock);
}

int copies_failed(struct copies *copies, struct error *err)
{
    if (!copies || !copies->started)
        return 0;
    pthread_mutex_lock(&copies->lock);
    int rc = copies->rc < 0 ? error_set(err, copies->rc, "%s", copies->err.text) : 0;
    pthread_mutex_unlock(&copies->lock);
    return rc;
}

int copies_await(struct copies *copies, struct error *err)
{
    if (!copies || !copies->started)
        return 0;
    pthread_mutex_lock(&copies->lock);
    while (copies->busy)
        pthread_cond_wait(&copies->changed, &copies->lock);
    pthread_mutex_unlock(&copies->lock);
    return copies_failed(copies, err);
}

static void stop_thread(struct copies *copies)
{
    if (!copies->started)
        return;
    pthread_mutex_lock(&copies->lock);
    copies->stopping = true;
    pthread_cond_broadcast(&copies->changed);
    pthread_mutex_unlock(&copies->lock);
    pthread_join(copies->thread, NULL);
    pthread_cond_destroy(&copies->changed);
    pthread_mutex_destroy(&copies->lock);
    copies->started = false;
}

uint64_t copies_bytes(const struct copies *copies)
{
    return copies->elements * COPIES_SLOTS * sizeof(float);
}

int copies_leave(struct copies *copies, struct holding *out[COPIES_SLOTS])
{
    int count = 0;
    if (copies)
        stop_thread(copies);
    for (int i = 0; copies && i < COPIES_SLOTS; i++) {
        if (!holding_published(copies->slots[i]))
            continue;
        out[count++] = copies->slots[i];
        copies->slots[i] = NULL;
    }
    copies_destroy(copies);
    return count;
}

void copies_destroy(struct copies *copies)
{
    if (!copies)
        return;
    stop_thread(copies);
    for (int i = 0; i < COPIES_SLOTS; i++)
        holding_release(copies->slots[i]);
    free(copies->own);
    free(copies->others);
    free(copies);
}

/* move.c - ranks meet over the new epoch's fabric, decide alike, and fill their boxes.
 *
 * Inventories are gathered as bytes inside f32 words, whose values no library interprets.
 *
 * What is decided on is the newest state that is complete. Ages are ordered by epoch, then by step:
 * what a later epoch has finished follows from the state it began with, whatever an earlier epoch
 * had achieved beyond that.
 *
 * For weights and each of the moments in turn, every pair of ranks exchanges at most one message
 * each way. It has all transfers from one rank to the other, one after another, in the order in
 * which both have cut them. */
#include "worker/move/move.h"

#include "common/base/memory.h"
#include "worker/move/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD sizeof(float)

struct move {
    struct move_config config;
    struct fabric_group *group;
    struct inventory *inventories;
    int rank, ranks;
    struct transfers transfers;
    struct move_decision decision;
};

static bool is_newer(const struct move_age *a, const struct move_age *b)
{
    return a->epoch != b->epoch ? a->epoch > b->epoch : a->step > b->step;
}

/* The newest state that is older than `limit`; NULL: none. */
static const struct offered_state *next_older(const struct inventory *inventories, int ranks,
                                              const struct move_age *limit)
{
    const struct offered_state *newest = NULL;
    for (int rank = 0; rank < ranks; rank++)
        for (size_t i = 0; i < inventories[rank].state_count; i++) {
            const struct offered_state *state = &inventories[rank].states[i];
            if (is_newer(limit, &state->age) && (!newest || is_newer(&state->age, &newest->age)))
                newest = state;
        }
    return newest;
}

/* The metrics of the step that produced states of this age; NULL: nobody knows them. */
static const float *find_metrics(const struct inventory *inventories, int ranks,
                                 const struct move_age *age)
{
    for (int rank = 0; rank < ranks; rank++)
        for (size_t i = 0; i < inventories[rank].state_count; i++) {
            const struct offered_state *state = &inventories[rank].states[i];
            if (state->has_metrics && state->age.epoch == age->epoch &&
                state->age.step == age->step)
                return state->metrics;
        }
    return NULL;
}

/* A pure function, so all ranks with the same inventories decide the same. `disk` is the age of the
 * newest checkpoint, or NULL. *out must be empty; for MOVE_MEMORY it receives who gives what, for
 * transfers_finish. */
static struct move_decision move_decide(const struct inventory *inventories, int ranks,
                                        size_t tensor_count, const struct move_age *disk,
                                        struct transfers *out)
{
    struct move_decision decision = {.source = MOVE_FRESH};
    struct target target = {.age = {UINT64_MAX, UINT64_MAX}};
    const struct offered_state *state;
    if (disk)
        decision = (struct move_decision){.source = MOVE_DISK, .age = *disk};
    while ((state = next_older(inventories, ranks, &target.age)) &&
           !(disk && is_newer(disk, &state->age))) {
        target.age = state->age;
        target.metrics = find_metrics(inventories, ranks, &target.age);
        if (transfers_cut(inventories, ranks, tensor_count, &target, out) == 0) {
            decision.source = MOVE_MEMORY;
            decision.age = target.age;
            decision.has_metrics = target.metrics != NULL;
            if (target.metrics)
                memcpy(decision.metrics, target.metrics, sizeof decision.metrics);
            return decision;
        }
        transfers_finish(out);
    }
    return decision;
}

static int move_join(struct move *move, struct error *err)
{
    int *all = xcalloc((size_t)move->ranks, sizeof *all);
    for (int i = 0; i < move->ranks; i++)
        all[i] = i;
    int rc =
        move->config.collectives->group(move->config.fabric, all, move->ranks, &move->group, err);
    free(all);
    return rc;
}

/* Gather how many words each rank's inventory has. */
static int gather_counts(struct move *move, uint32_t own, size_t *counts, struct error *err)
{
    size_t *ones = xcalloc((size_t)move->ranks, sizeof *ones);
    float *words = xcalloc((size_t)move->ranks, sizeof *words), mine;
    for (int i = 0; i < move->ranks; i++)
        ones[i] = 1;
    memcpy(&mine, &own, sizeof mine);
    int rc = move->config.collectives->all_gather(
        move->group, ELEMENT_F32, &(struct collective_part){&mine, words, ones}, 1, err);
    for (int i = 0; i < move->ranks && rc == 0; i++) {
        uint32_t count;
        memcpy(&count, &words[i], sizeof count);
        counts[i] = count;
    }
    free(words);
    free(ones);
    return rc;
}

/* The first word of an inventory is its size in bytes. */
static int unpack_inventory(struct move *move, int rank, const float *words, size_t count,
                            struct error *err)
{
    uint32_t size = 0;
    if (count > 0)
        memcpy(&size, words, WORD);
    int rc =
        count == 0 || size > (count - 1) * WORD
            ? error_set(err, -EPROTO, "its offer is cut off")
            : inventory_unpack(words + 1, size, move->config.graph, &move->inventories[rank], err);
    return rc < 0 ? error_prefix(err, rc, "what rank %d holds", rank) : 0;
}

static int gather_inventories(struct move *move, const void *own, size_t size, struct error *err)
{
    size_t own_words = 1 + (size + WORD - 1) / WORD, total = 0;
    size_t *counts = xcalloc((size_t)move->ranks, sizeof *counts);
    float *mine = xcalloc(own_words, sizeof *mine), *words = NULL;
    uint32_t bytes = (uint32_t)size;
    memcpy(mine, &bytes, WORD);
    memcpy(mine + 1, own, size);
    int rc = 0;
    if (move->group)
        rc = gather_counts(move, (uint32_t)own_words, counts, err);
    else
        counts[0] = own_words;
    for (int i = 0; i < move->ranks; i++)
        total += counts[i];
    words = xcalloc(total, sizeof *words);
    if (rc == 0 && move->group)
        rc = move->config.collectives->all_gather(
            move->group, ELEMENT_F32, &(struct collective_part){mine, words, counts}, 1, err);
    else if (rc == 0)
        memcpy(words, mine, own_words * WORD);
    const float *at = words;
    for (int i = 0; i < move->ranks && rc == 0; i++) {
        rc = unpack_inventory(move, i, at, counts[i], err);
        at += counts[i];
    }
    free(words);
    free(mine);
    free(counts);
    return rc;
}

int move_meet(const struct move_config *config, struct move **out, struct error *err)
{
    struct move *move = xcalloc(1, sizeof *move);
    size_t size;
    move->config = *config;
    move->rank = config->rank;
    move->ranks = config->ranks;
    move->inventories = xcalloc((size_t)move->ranks, sizeof *move->inventories);
    void *own = inventory_pack(config, &size);
    int rc = config->fabric ? move_join(move, err) : 0;
    if (rc == 0)
        rc = gather_inventories(move, own, size, err);
    free(own);
    if (rc < 0) {
        move_destroy(move);
        return error_prefix(err, rc, "agree on a state to go on from");
    }
    move->decision = move_decide(move->inventories, move->ranks, config->graph->tensor_count,
                                 config->has_disk ? &config->disk : NULL, &move->transfers);
    *out = move;
    return 0;
}

void move_destroy(struct move *move)
{
    if (!move)
        return;
    for (int i = 0; i < move->ranks; i++)
        inventory_release(&move->inventories[i]);
    free(move->inventories);
    transfers_finish(&move->transfers);
    free(move);
}

const struct move_config *move_config_of(const struct move *move)
{
    return &move->config;
}

const struct inventory *move_inventory(const struct move *move, int rank)
{
    return &move->inventories[rank];
}

const struct move_decision *move_decided(const struct move *move)
{
    return &move->decision;
}

bool move_must_apply(const struct move *move, size_t index)
{
    const struct offered_state *state = &move->inventories[move->rank].states[index];
    const struct move_decision *decision = &move->decision;
    const struct target target = {decision->age, decision->has_metrics ? decision->metrics : NULL};
    return decision->source == MOVE_MEMORY && offered_gives(state, &target) &&
           state->age.step != decision->age.step;
}

static const struct state_slice *slice_given(const struct move *move,
                                             const struct transfer *transfer)
{
    return state_slices_find(move->config.held[transfer->state].slices, transfer->tensor);
}

struct filling {
    struct move *move;
    const struct state_slice *state; /* the new one */
    int which;                       /* an enum state_part */
    struct message {
        float *data;
        size_t count;
        struct fabric_request *request;
    } * out, *in; /* per rank */
};

/* Copy what is here already; put what is for others into their messages. */
static void pack_messages(struct filling *filling)
{
    struct move *move = filling->move;
    for (size_t i = 0; i < move->transfers.count; i++) {
        const struct transfer *transfer = &move->transfers.items[i];
        if (transfer->from != move->rank)
            continue;
        const struct state_slice *from = slice_given(move, transfer);
        const float *data = from->parts[filling->which];
        if (transfer->to == move->rank) {
            const struct state_slice *to = state_slices_find(filling->state, transfer->tensor);
            box_copy(&from->box, data, &to->box, to->parts[filling->which], &transfer->box);
            continue;
        }
        struct message *message = &filling->out[transfer->to];
        box_copy(&from->box, data, &transfer->box, message->data + message->count, &transfer->box);
        message->count += (size_t)box_count(&transfer->box);
    }
}

static void unpack_message(struct filling *filling, int peer)
{
    const struct move *move = filling->move;
    const float *at = filling->in[peer].data;
    for (size_t i = 0; i < move->transfers.count; i++) {
        const struct transfer *transfer = &move->transfers.items[i];
        if (transfer->from != peer || transfer->to != move->rank)
            continue;
        const struct state_slice *to = state_slices_find(filling->state, transfer->tensor);
        box_copy(&transfer->box, at, &to->box, to->parts[filling->which], &transfer->box);
        at += box_count(&transfer->box);
    }
}

/* The memory of a send must not change until its request has ended, however that ends. */
static int await_sent(struct filling *filling, int rc, struct error *err)
{
    const struct move_config *config = &filling->move->config;
    struct error ignored;
    if (rc < 0 && config->fabric)
        config->collectives->abort(config->fabric);
    for (int peer = 0; peer < filling->move->ranks; peer++) {
        struct message *message = &filling->out[peer];
        if (!message->request)
            continue;
        int sent =
            config->collectives->wait(config->fabric, message->request, rc < 0 ? &ignored : err);
        message->request = NULL;
        rc = rc < 0 ? rc : sent;
    }
    return rc;
}

static int exchange_messages(struct filling *filling, struct error *err)
{
    struct move *move = filling->move;
    const struct collectives *c = move->config.collectives;
    struct fabric *fabric = move->config.fabric;
    uint32_t tag = MOVE_TAG_FILL + (uint32_t)filling->which;
    int rc = 0;
    for (int i = 0; i < move->ranks; i++)
        filling->out[i].count = 0;
    pack_messages(filling);
    for (int peer = 0; peer < move->ranks && rc == 0; peer++) {
        struct message *message = &filling->out[peer];
        if (message->count > 0)
            rc = c->send(fabric, peer, tag, ELEMENT_F32, message->data, message->count,
                         &message->request, err);
    }
    for (int peer = 0; peer < move->ranks && rc == 0; peer++) {
        struct message *message = &filling->in[peer];
        if (message->count > 0)
            rc = c->receive(fabric, peer, tag, ELEMENT_F32, message->data, message->count, err);
        if (message->count > 0 && rc == 0)
            unpack_message(filling, peer);
    }
    return await_sent(filling, rc, err);
}

/* Allocate one round of messages; their sizes are the same in every round. */
static int reserve_messages(struct filling *filling, uint64_t *bytes, struct error *err)
{
    const struct move *move = filling->move;
    for (size_t i = 0; i < move->transfers.count; i++) {
        const struct transfer *transfer = &move->transfers.items[i];
        if (transfer->from == move->rank && transfer->to != move->rank)
            filling->out[transfer->to].count += (size_t)box_count(&transfer->box);
        else if (transfer->to == move->rank && transfer->from != move->rank)
            filling->in[transfer->from].count += (size_t)box_count(&transfer->box);
    }
    for (int peer = 0; peer < move->ranks; peer++) {
        struct message *both[] = {&filling->out[peer], &filling->in[peer]};
        for (int i = 0; i < 2; i++) {
            both[i]->data = malloc(both[i]->count * WORD + 1);
            if (!both[i]->data)
                return error_set(err, -ENOBUFS, "no %zu bytes of memory for state on its way",
                                 both[i]->count * WORD);
        }
        *bytes += filling->in[peer].count * WORD * STATE_PARTS;
    }
    return 0;
}

int move_fill(struct move *move, state_buffer_cb *buffer, void *context, uint64_t *bytes,
              struct error *err)
{
    struct state_slice *state =
        move->config.program ? state_slices(move->config.program, buffer, context) : NULL;
    struct filling filling = {.move = move, .state = state};
    filling.out = xcalloc((size_t)move->ranks, sizeof *filling.out);
    filling.in = xcalloc((size_t)move->ranks, sizeof *filling.in);
    *bytes = 0;
    int rc = reserve_messages(&filling, bytes, err);
    for (; filling.which < STATE_PARTS && rc == 0; filling.which++)
        rc = exchange_messages(&filling, err);
    for (int i = 0; i < move->ranks; i++) {
        free(filling.out[i].data);
        free(filling.in[i].data);
    }
    free(filling.out);
    free(filling.in);
    free(state);
    return rc < 0 ? error_prefix(err, rc, "move the state") : 0;
}

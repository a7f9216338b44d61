/* move.c - meeting over the new epoch's fabric, and filling boxes.
 *
 * Offers are gathered as bytes in words of f32, which no library looks into. Then, for weights and
 * for each moment in turn, every pair of ranks exchanges at most one message: all parts from one to
 * the other, side by side, in the order in which both have cut them. */
#include "worker/move/move.h"

#include "common/base/memory.h"
#include "worker/move/decide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD sizeof(float)
#define TAG UINT32_C(0xffffff00) /* plus the part; a program's tags are numbers of tensors */

struct move {
    struct move_config config;
    struct fabric_group *group;
    struct offer *offers;
    int rank, ranks;
    struct parts parts;
    struct move_decision decision;
};

static int join(struct move *move, struct error *err)
{
    int *all = xcalloc((size_t)move->ranks, sizeof *all);
    for (int i = 0; i < move->ranks; i++)
        all[i] = i;
    int rc = move->config.collectives->group(move->config.fabric, all, move->ranks, &move->group,
                                             err);
    free(all);
    return rc;
}

/* How many words each rank has to say. */
static int gather_counts(struct move *move, uint32_t own, size_t *counts, struct error *err)
{
    size_t *ones = xcalloc((size_t)move->ranks, sizeof *ones);
    float *words = xcalloc((size_t)move->ranks, sizeof *words), mine;
    for (int i = 0; i < move->ranks; i++)
        ones[i] = 1;
    memcpy(&mine, &own, sizeof mine);
    int rc = move->config.collectives->all_gather(move->group, &mine, words, ones, err);
    for (int i = 0; i < move->ranks && rc == 0; i++) {
        uint32_t count;
        memcpy(&count, &words[i], sizeof count);
        counts[i] = count;
    }
    free(words);
    free(ones);
    return rc;
}

/* A rank's words begin with the number of bytes that count. */
static int unpack(struct move *move, int rank, const float *words, size_t count, struct error *err)
{
    uint32_t size;
    memcpy(&size, words, WORD);
    int rc = size > (count - 1) * WORD
                 ? error_set(err, -EPROTO, "its offer is cut off")
                 : offer_unpack(words + 1, size, move->config.program, &move->offers[rank], err);
    return rc < 0 ? error_prefix(err, rc, "what rank %d holds", rank) : 0;
}

static int gather_offers(struct move *move, const void *own, size_t size, struct error *err)
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
        rc = move->config.collectives->all_gather(move->group, mine, words, counts, err);
    else if (rc == 0)
        memcpy(words, mine, own_words * WORD);
    const float *at = words;
    for (int i = 0; i < move->ranks && rc == 0; i++) {
        rc = unpack(move, i, at, counts[i], err);
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
    move->rank = config->program->rank;
    move->ranks = config->program->ranks;
    move->offers = xcalloc((size_t)move->ranks, sizeof *move->offers);
    void *own = offer_pack(config, &size);
    int rc = config->fabric ? join(move, err) : 0;
    if (rc == 0)
        rc = gather_offers(move, own, size, err);
    free(own);
    if (rc < 0) {
        move_destroy(move);
        return error_prefix(err, rc, "agree on a state to go on from");
    }
    move->decision =
        move_decide(move->offers, move->ranks, config->program->graph->tensor_count,
                    config->has_disk ? &config->disk : NULL, &move->parts);
    *out = move;
    return 0;
}

void move_destroy(struct move *move)
{
    if (!move)
        return;
    for (int i = 0; i < move->ranks; i++)
        offer_finish(&move->offers[i]);
    free(move->offers);
    parts_finish(&move->parts);
    free(move);
}

const struct move_decision *move_decided(const struct move *move)
{
    return &move->decision;
}

bool move_must_apply(const struct move *move, size_t index)
{
    const struct offered_state *state = &move->offers[move->rank].states[index];
    return move->decision.source == MOVE_MEMORY && offered_gives(state, &move->decision.age) &&
           state->age.step != move->decision.age.step;
}

static const struct parameter *find(const struct program *program, int tensor)
{
    const struct parameter *parameter = program->parameters;
    while (parameter->tensor != tensor)
        parameter++;
    return parameter;
}

/* The memory of a slice: of a state that the rank holds, or of the new one. */
struct piece_of {
    const struct box *box;
    float *data;
};

static struct piece_of source(const struct move *move, const struct part *part, int which)
{
    const struct move_held *held = &move->config.held[part->state];
    const struct parameter *parameter = find(held->program, part->tensor);
    return (struct piece_of){&parameter->box,
                             held->buffer(held->context, state_buffer_of(parameter, which))};
}

struct filling {
    struct move *move;
    state_buffer_cb *buffer;
    void *context;
    int which; /* enum checkpoint_part */
    struct message {
        float *data;
        size_t count;
        struct fabric_request *request;
    } *out, *in; /* per rank */
};

static struct piece_of destination(const struct filling *filling, const struct part *part)
{
    const struct parameter *parameter = find(filling->move->config.program, part->tensor);
    return (struct piece_of){
        &parameter->box,
        filling->buffer(filling->context, state_buffer_of(parameter, filling->which))};
}

/* What is here already is copied at once; what goes to others is put side by side. */
static void pack(struct filling *filling)
{
    struct move *move = filling->move;
    for (size_t i = 0; i < move->parts.count; i++) {
        const struct part *part = &move->parts.items[i];
        if (part->from != move->rank)
            continue;
        struct piece_of from = source(move, part, filling->which);
        if (part->to == move->rank) {
            struct piece_of to = destination(filling, part);
            box_copy(from.box, from.data, to.box, to.data, &part->box);
            continue;
        }
        struct message *message = &filling->out[part->to];
        box_copy(from.box, from.data, &part->box, message->data + message->count, &part->box);
        message->count += (size_t)box_count(&part->box);
    }
}

static void unpack_from(struct filling *filling, int peer)
{
    const struct move *move = filling->move;
    const float *at = filling->in[peer].data;
    for (size_t i = 0; i < move->parts.count; i++) {
        const struct part *part = &move->parts.items[i];
        if (part->from != peer || part->to != move->rank)
            continue;
        struct piece_of to = destination(filling, part);
        box_copy(&part->box, at, to.box, to.data, &part->box);
        at += box_count(&part->box);
    }
}

/* What is sent stays where it is until its request has ended, however that went. */
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
        int sent = config->collectives->wait(config->fabric, message->request,
                                             rc < 0 ? &ignored : err);
        message->request = NULL;
        rc = rc < 0 ? rc : sent;
    }
    return rc;
}

static int exchange(struct filling *filling, struct error *err)
{
    struct move *move = filling->move;
    const struct collectives *c = move->config.collectives;
    struct fabric *fabric = move->config.fabric;
    uint32_t tag = TAG + (uint32_t)filling->which;
    int rc = 0;
    for (int i = 0; i < move->ranks; i++)
        filling->out[i].count = 0;
    pack(filling);
    for (int peer = 0; peer < move->ranks && rc == 0; peer++) {
        struct message *message = &filling->out[peer];
        if (message->count > 0)
            rc = c->send(fabric, peer, tag, message->data, message->count, &message->request, err);
    }
    for (int peer = 0; peer < move->ranks && rc == 0; peer++) {
        struct message *message = &filling->in[peer];
        if (message->count > 0)
            rc = c->receive(fabric, peer, tag, message->data, message->count, err);
        if (message->count > 0 && rc == 0)
            unpack_from(filling, peer);
    }
    return await_sent(filling, rc, err);
}

/* Room for one round of messages, which are of the same sizes in each. */
static int reserve(struct filling *filling, uint64_t *bytes, struct error *err)
{
    const struct move *move = filling->move;
    for (size_t i = 0; i < move->parts.count; i++) {
        const struct part *part = &move->parts.items[i];
        if (part->from == move->rank && part->to != move->rank)
            filling->out[part->to].count += (size_t)box_count(&part->box);
        else if (part->to == move->rank && part->from != move->rank)
            filling->in[part->from].count += (size_t)box_count(&part->box);
    }
    for (int peer = 0; peer < move->ranks; peer++) {
        struct message *both[] = {&filling->out[peer], &filling->in[peer]};
        for (int i = 0; i < 2; i++) {
            both[i]->data = malloc(both[i]->count * WORD + 1);
            if (!both[i]->data)
                return error_set(err, -ENOMEM, "no %zu bytes of memory for state on its way",
                                 both[i]->count * WORD);
        }
        *bytes += filling->in[peer].count * WORD * CHECKPOINT_PARTS;
    }
    return 0;
}

int move_fill(struct move *move, state_buffer_cb *buffer, void *context, uint64_t *bytes,
              struct error *err)
{
    struct filling filling = {.move = move, .buffer = buffer, .context = context};
    filling.out = xcalloc((size_t)move->ranks, sizeof *filling.out);
    filling.in = xcalloc((size_t)move->ranks, sizeof *filling.in);
    *bytes = 0;
    int rc = reserve(&filling, bytes, err);
    for (; filling.which < CHECKPOINT_PARTS && rc == 0; filling.which++)
        rc = exchange(&filling, err);
    for (int i = 0; i < move->ranks; i++) {
        free(filling.out[i].data);
        free(filling.in[i].data);
    }
    free(filling.out);
    free(filling.in);
    return rc < 0 ? error_prefix(err, rc, "move the state") : 0;
}

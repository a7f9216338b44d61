/* fill.c - fills boxes. For weights and each of the moments in turn, every pair of ranks exchanges
 * at most one message each way. It has all parts from one rank to the other, one after another, in
 * the order in which both have cut them. */
#include "common/base/memory.h"
#include "worker/move/internal.h"

#include <errno.h>
#include <stdlib.h>

#define WORD sizeof(float)

static const struct state_slice *source(const struct move *move, const struct part *part)
{
    return state_slices_find(move->config.held[part->state].slices, part->tensor);
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

/* Copy parts that are here already; put parts for others into their messages. */
static void pack(struct filling *filling)
{
    struct move *move = filling->move;
    for (size_t i = 0; i < move->parts.count; i++) {
        const struct part *part = &move->parts.items[i];
        if (part->from != move->rank)
            continue;
        const struct state_slice *from = source(move, part);
        const float *data = from->parts[filling->which];
        if (part->to == move->rank) {
            const struct state_slice *to = state_slices_find(filling->state, part->tensor);
            box_copy(&from->box, data, &to->box, to->parts[filling->which], &part->box);
            continue;
        }
        struct message *message = &filling->out[part->to];
        box_copy(&from->box, data, &part->box, message->data + message->count, &part->box);
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
        const struct state_slice *to = state_slices_find(filling->state, part->tensor);
        box_copy(&part->box, at, &to->box, to->parts[filling->which], &part->box);
        at += box_count(&part->box);
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

static int exchange(struct filling *filling, struct error *err)
{
    struct move *move = filling->move;
    const struct collectives *c = move->config.collectives;
    struct fabric *fabric = move->config.fabric;
    uint32_t tag = MOVE_TAG_FILL + (uint32_t)filling->which;
    int rc = 0;
    for (int i = 0; i < move->ranks; i++)
        filling->out[i].count = 0;
    pack(filling);
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
            unpack_from(filling, peer);
    }
    return await_sent(filling, rc, err);
}

/* Allocate one round of messages; their sizes are the same in every round. */
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
    int rc = reserve(&filling, bytes, err);
    for (; filling.which < STATE_PARTS && rc == 0; filling.which++)
        rc = exchange(&filling, err);
    for (int i = 0; i < move->ranks; i++) {
        free(filling.out[i].data);
        free(filling.in[i].data);
    }
    free(filling.out);
    free(filling.in);
    free(state);
    return rc < 0 ? error_prefix(err, rc, "move the state") : 0;
}

/* move.c - ranks meet over the new epoch's fabric.
 *
 * Offers are gathered as bytes inside f32 words, whose values no library interprets. */
#include "common/base/memory.h"
#include "worker/move/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD sizeof(float)

static int join(struct move *move, struct error *err)
{
    int *all = xcalloc((size_t)move->ranks, sizeof *all);
    for (int i = 0; i < move->ranks; i++)
        all[i] = i;
    int rc =
        move->config.collectives->group(move->config.fabric, all, move->ranks, &move->group, err);
    free(all);
    return rc;
}

/* Gather how many words each rank's offer has. */
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

/* The first word of an offer is its size in bytes. */
static int unpack(struct move *move, int rank, const float *words, size_t count, struct error *err)
{
    uint32_t size = 0;
    if (count > 0)
        memcpy(&size, words, WORD);
    int rc = count == 0 || size > (count - 1) * WORD
                 ? error_set(err, -EPROTO, "its offer is cut off")
                 : offer_unpack(words + 1, size, move->config.graph, &move->offers[rank], err);
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
        rc = move->config.collectives->all_gather(
            move->group, ELEMENT_F32, &(struct collective_part){mine, words, counts}, 1, err);
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
    move->rank = config->rank;
    move->ranks = config->ranks;
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
    move->decision = move_decide(move->offers, move->ranks, config->graph->tensor_count,
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
    const struct move_decision *decision = &move->decision;
    const struct target target = {decision->age, decision->has_metrics ? decision->metrics : NULL};
    return decision->source == MOVE_MEMORY && offered_gives(state, &target) &&
           state->age.step != decision->age.step;
}

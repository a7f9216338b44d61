/* dossiers.c - an array, searched from its end: the newest jobs are asked for most. Of the plans
 * that are ready, those for the same set of devices in any order are the same. */
#include "coordinator/turn/dossiers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/memory.h"

static void spares_remove(struct spares *spares, size_t index)
{
    struct spare *spare = &spares->items[index];
    planning_finish(&spare->planning);
    free(spare->devices);
    *spare = spares->items[--spares->count];
}

void spares_drop(struct spares *spares)
{
    while (spares->count > 0)
        spares_remove(spares, spares->count - 1);
}

void spares_clear(struct spares *spares)
{
    spares_drop(spares);
    free(spares->items);
    *spares = (struct spares){0};
}

static bool spare_has(const struct spare *spare, const struct device_ref *device)
{
    for (size_t i = 0; i < spare->count; i++)
        if (device_ref_equal(&spare->devices[i], device))
            return true;
    return false;
}

/* The same for the same devices in any order. */
static uint64_t spare_fingerprint(const struct device_ref *devices, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += hash_number(hash_number(HASH_START, devices[i].instance), devices[i].index);
    return sum;
}

/* Whether these are the spare's devices; mostly they come in its order. */
static bool spare_is_for(const struct spare *spare, const struct device_ref *devices, size_t count)
{
    bool all = spare->count == count;
    for (size_t i = 0; i < count && all; i++)
        all = device_ref_equal(&spare->devices[i], &devices[i]) || spare_has(spare, &devices[i]);
    return all;
}

struct spare *spares_find(const struct spares *spares, const struct device_ref *devices,
                          size_t count)
{
    uint64_t wanted = spare_fingerprint(devices, count);
    for (size_t i = 0; i < spares->count; i++)
        if (spares->items[i].fingerprint == wanted &&
            spare_is_for(&spares->items[i], devices, count))
            return &spares->items[i];
    return NULL;
}

void spares_keep(struct spares *spares, struct device_ref *devices, size_t count,
                 const struct planning *planning)
{
    struct spare *known = spares_find(spares, devices, count);
    if (known)
        spares_remove(spares, (size_t)(known - spares->items));
    spares->items = grow(spares->items, spares->count, &spares->capacity, sizeof *spares->items);
    spares->items[spares->count++] =
        (struct spare){devices, count, spare_fingerprint(devices, count), *planning};
}

bool spares_take(struct spares *spares, const struct job *job, struct planning *out)
{
    size_t count = job_trainers(job);
    struct device_ref *refs = xcalloc(count, sizeof *refs);
    for (size_t i = 0; i < count; i++)
        refs[i] = job->ranks[i].device;
    struct spare *spare = spares_find(spares, refs, count);
    bool found = spare && spare->planning.plan;
    free(refs);
    if (!found)
        return false;
    *out = spare->planning;
    spare->planning = (struct planning){0};
    spares_remove(spares, (size_t)(spare - spares->items));
    return true;
}

struct dossier *dossier_find(const struct state *state, const char *job)
{
    for (size_t i = state->dossiers->count; i-- > 0;)
        if (strcmp(state->dossiers->items[i]->id, job) == 0)
            return state->dossiers->items[i];
    return NULL;
}

struct dossier *dossier_add(struct state *state, const char *job, struct job_config *config)
{
    struct dossier *dossier = xcalloc(1, sizeof *dossier);
    snprintf(dossier->id, sizeof dossier->id, "%s", job);
    dossier->config = config;
    state->dossiers->items = grow(state->dossiers->items, state->dossiers->count,
                                  &state->dossiers->capacity, sizeof(struct dossier *));
    state->dossiers->items[state->dossiers->count++] = dossier;
    return dossier;
}

static void dossier_destroy(struct dossier *dossier)
{
    planning_finish(&dossier->planning);
    stalls_finish(&dossier->stalls);
    pace_finish(&dossier->pace);
    spares_clear(&dossier->spares);
    free(dossier->scarce);
    corpus_destroy(dossier->corpus);
    job_config_destroy(dossier->config);
    free(dossier);
}

void dossiers_prune(struct state *state)
{
    size_t kept = 0;
    for (size_t i = 0; i < state->dossiers->count; i++) {
        struct dossier *dossier = state->dossiers->items[i];
        if (jobs_find(state->jobs, dossier->id)) {
            state->dossiers->items[kept++] = dossier;
            continue;
        }
        telemetry_forget(state->telemetry, dossier->id);
        dossier_destroy(dossier);
    }
    state->dossiers->count = kept;
}

void dossiers_finish(struct dossiers *dossiers)
{
    for (size_t i = 0; i < dossiers->count; i++)
        dossier_destroy(dossiers->items[i]);
    free(dossiers->items);
    *dossiers = (struct dossiers){0};
}

/* conditions.c - two short arrays, of slow devices and of links, and what dossiers have of
 * memory. */
#include "coordinator/turn/conditions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

#define MEMORY_LESS 0.9 /* the share of what was too much that may be planned next */

/* Figures of links are rounded to powers of this, so that links that are alike stay alike. */
#define LINK_STEP 1.25

size_t conditions_own_devices(const struct job *job, const struct device_view *all, size_t count,
                              struct device_view *out)
{
    size_t own = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].holder, job->id) == 0 && job_trains_on(job, &all[i].ref))
            out[own++] = all[i];
    return own;
}

size_t conditions_free_devices(const struct device_view *all, size_t count, enum hardware_kind kind,
                               struct device_view *out)
{
    size_t free = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].grantable && !all[i].holder[0] && all[i].device->kind == kind)
            out[free++] = all[i];
    return free;
}

/* ---- slowness ---- */

static struct slow_device *slow_find(const struct state *state, const struct device_ref *ref)
{
    for (size_t i = 0; i < state->conditions->slow_count; i++)
        if (device_ref_equal(&state->conditions->slow[i].device, ref))
            return &state->conditions->slow[i];
    return NULL;
}

double conditions_slowdown(const struct state *state, const struct device_ref *ref)
{
    const struct slow_device *slow = slow_find(state, ref);
    return slow ? slow->factor : 1;
}

bool conditions_is_slow(const struct state *state, const struct device_ref *ref)
{
    return slow_find(state, ref) != NULL;
}

void conditions_set_slowdown(struct state *state, const struct device_ref *ref, double factor)
{
    struct slow_device *slow = slow_find(state, ref);
    if (!slow) {
        state->conditions->slow =
            grow(state->conditions->slow, state->conditions->slow_count,
                 &state->conditions->slow_capacity, sizeof *state->conditions->slow);
        slow = &state->conditions->slow[state->conditions->slow_count++];
    }
    *slow = (struct slow_device){*ref, factor};
    if (factor <= 1)
        *slow = state->conditions->slow[--state->conditions->slow_count];
}

void conditions_forget_slow(struct state *state, uint64_t instance)
{
    for (size_t i = state->conditions->slow_count; i-- > 0;)
        if (state->conditions->slow[i].device.instance == instance)
            state->conditions->slow[i] = state->conditions->slow[--state->conditions->slow_count];
}

/* ---- links ---- */

const char *conditions_host(const struct state *state, const struct job *job, size_t rank)
{
    const struct worker *worker =
        membership_find(state->membership, job->ranks[rank].device.worker);
    return worker ? worker->report->host : NULL;
}

enum hardware_kind conditions_kind(const struct state *state, const struct job *job, size_t rank)
{
    return conditions_has_host_memory(state, job, rank) ? HARDWARE_CPU : HARDWARE_GPU;
}

static double link_round(double value)
{
    return value > 0 ? pow(LINK_STEP, round(log(value) / log(LINK_STEP))) : 0;
}

bool conditions_network(const struct state *state, const char *host, enum hardware_kind kind,
                        struct hardware_link *out)
{
    bool known = false;
    for (size_t i = 0; i < state->conditions->link_count; i++) {
        const struct host_link *link = &state->conditions->links[i];
        if (link->kind != kind ||
            (strcmp(link->hosts[0], host) != 0 && strcmp(link->hosts[1], host) != 0))
            continue;
        if (!known || link->link.seconds_per_byte < out->seconds_per_byte)
            *out = link->link;
        known = true;
    }
    return known;
}

static void links_drop(struct conditions *conditions, size_t i)
{
    free(conditions->links[i].hosts[0]);
    free(conditions->links[i].hosts[1]);
    conditions->links[i] = conditions->links[--conditions->link_count];
}

void conditions_forget_network(struct state *state, const char *worker)
{
    const struct worker *lost = membership_find(state->membership, worker);
    for (size_t i = state->conditions->link_count; i-- > 0;)
        if (!lost || strcmp(state->conditions->links[i].hosts[0], lost->report->host) == 0 ||
            strcmp(state->conditions->links[i].hosts[1], lost->report->host) == 0)
            links_drop(state->conditions, i);
}

static bool link_is_between(const struct host_link *link, const char *a, const char *b)
{
    return (strcmp(link->hosts[0], a) == 0 && strcmp(link->hosts[1], b) == 0) ||
           (strcmp(link->hosts[0], b) == 0 && strcmp(link->hosts[1], a) == 0);
}

/* Keep a link in place of what was measured before between the same two hosts. */
void conditions_keep_link(struct state *state, const char *a, const char *b,
                          enum hardware_kind kind, const struct hardware_link *link)
{
    size_t i = 0;
    while (i < state->conditions->link_count &&
           (state->conditions->links[i].kind != kind ||
            !link_is_between(&state->conditions->links[i], a, b)))
        i++;
    if (i == state->conditions->link_count) {
        state->conditions->links =
            grow(state->conditions->links, state->conditions->link_count,
                 &state->conditions->link_capacity, sizeof *state->conditions->links);
        state->conditions->links[state->conditions->link_count++] =
            (struct host_link){.hosts = {xstrdup(a), xstrdup(b)}, .kind = kind};
    }
    state->conditions->links[i].link =
        (struct hardware_link){link_round(link->latency_s), link_round(link->seconds_per_byte)};
}

/* During a replan nothing is measured, since executors stand still meanwhile. */
bool conditions_wants_links(const struct state *state, const struct job *job)
{
    const char *first = job->rank_count > 0 ? conditions_host(state, job, 0) : NULL;
    bool several = false, unknown = false;
    struct hardware_link link;
    for (size_t i = 0; i < job_trainers(job) && first; i++) {
        const char *host = conditions_host(state, job, i);
        several = several || (host && strcmp(host, first) != 0);
        unknown = unknown ||
                  (host && !conditions_network(state, host, conditions_kind(state, job, i), &link));
    }
    return several && unknown && !dossier_find(state, job->id)->replan.going;
}

size_t conditions_views(const struct state *state, struct device_view **out)
{
    size_t count = membership_devices(state->membership, out);
    for (size_t i = 0; i < count; i++) {
        struct device_view *view = &(*out)[i];
        view->slowdown = conditions_slowdown(state, &view->ref);
        conditions_network(state, view->host, view->device->kind, &view->network);
        conditions_network(state, view->host, HARDWARE_CPU, &view->host_network);
    }
    return count;
}

/* ---- memory ---- */

static struct scarce_device *scarce_find(const struct dossier *dossier,
                                         const struct device_ref *device)
{
    for (size_t i = 0; i < dossier->scarce_count; i++)
        if (device_ref_equal(&dossier->scarce[i].device, device))
            return &dossier->scarce[i];
    return NULL;
}

/* Bytes that the plan needs on the rank, by the planner's rule: those of its stage's largest
 * rank. */
static uint64_t plan_rank_bytes(const struct plan *plan, int rank)
{
    int inside;
    return plan->stages[plan_rank_stage(plan, rank, &inside)].memory_bytes;
}

static struct scarce_device *scarce_add(struct dossier *dossier, const struct device_ref *device)
{
    dossier->scarce = grow(dossier->scarce, dossier->scarce_count, &dossier->scarce_capacity,
                           sizeof *dossier->scarce);
    struct scarce_device *scarce = &dossier->scarce[dossier->scarce_count++];
    *scarce = (struct scarce_device){*device, UINT64_MAX};
    return scarce;
}

/* The device as its worker reports it; NULL: it is not there. */
static const struct hardware_device *device_told(const struct state *state,
                                                 const struct device_ref *device)
{
    const struct worker *worker = membership_find(state->membership, device->worker);
    bool known = worker && device->index < worker->report->device_count;
    return known ? &worker->report->devices[device->index] : NULL;
}

bool conditions_has_host_memory(const struct state *state, const struct job *job, size_t rank)
{
    const struct hardware_device *device = device_told(state, &job->ranks[rank].device);
    return device && device->kind == HARDWARE_CPU;
}

/* The plan's figure may be more than this device has, because its stage's largest rank may be on a
 * larger device. */
uint64_t conditions_lower_memory(struct state *state, const struct job *job, size_t rank)
{
    struct dossier *dossier = dossier_find(state, job->id);
    const struct plan *plan = dossier->planning.plan;
    if (!plan || rank >= (size_t)plan_ranks(plan))
        return 0;
    const struct device_ref *device = &job->ranks[rank].device;
    const struct hardware_device *known = device_told(state, device);
    uint64_t most = plan_rank_bytes(plan, (int)rank),
             has = known ? known->memory_bytes : UINT64_MAX;
    struct scarce_device *scarce = scarce_find(dossier, device);
    if (!scarce)
        scarce = scarce_add(dossier, device);
    most = has < most ? has : most;
    most = scarce->memory_max < most ? scarce->memory_max : most;
    scarce->memory_max = (uint64_t)(MEMORY_LESS * (double)most);
    spares_clear(&dossier->spares); /* they may need as much */
    return scarce->memory_max;
}

bool conditions_memory_serves(const struct dossier *dossier, const struct plan *plan, int rank,
                              const struct device_ref *device)
{
    const struct scarce_device *scarce = scarce_find(dossier, device);
    return !scarce || plan_rank_bytes(plan, rank) <= scarce->memory_max;
}

void conditions_limit_memory(const struct dossier *dossier, struct device_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct scarce_device *scarce = scarce_find(dossier, &views[i].ref);
        views[i].memory_max = scarce ? scarce->memory_max : 0;
    }
}

void conditions_finish(struct conditions *conditions)
{
    while (conditions->link_count > 0)
        links_drop(conditions, conditions->link_count - 1);
    free(conditions->links);
    free(conditions->slow);
    *conditions = (struct conditions){0};
}

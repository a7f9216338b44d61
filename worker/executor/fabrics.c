/* fabrics.c - joins the other ranks of an epoch: in host memory, where programs run, and for
 * giving. And chooses who measures between hosts, and over which of these fabrics. */
#include "worker/executor/fabrics.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/executor/session.h"
#include "worker/kernels/devices.h"
#include "worker/probe/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a collective waits for a peer before it fails: LIMIT_S seconds plus LIMIT_STEPS times
 * the predicted time of a step's kernels, since the peer may be busy with those. Ranks that are
 * threads of one process end together, so they wait for each other as long as it takes. */
#define LIMIT_S 30
#define LIMIT_STEPS 10
#define LIMIT_THREADS_S 86400
#define PREFIXED_SIZE 256 /* longest key, in bytes */

/* ---- a rendezvous with a prefix on its keys ---- */

struct prefixed {
    const struct rendezvous *inner;
    const char *prefix;
    struct rendezvous rendezvous;
};

static int prefixed_put(void *context, const char *key, const void *value, size_t size,
                        struct error *err)
{
    const struct prefixed *prefixed = context;
    char whole[PREFIXED_SIZE];
    snprintf(whole, sizeof whole, "%s/%s", prefixed->prefix, key);
    return prefixed->inner->put(prefixed->inner->context, whole, value, size, err);
}

static int prefixed_get(void *context, const char *key, void *value, size_t *size,
                        struct error *err)
{
    const struct prefixed *prefixed = context;
    char whole[PREFIXED_SIZE];
    snprintf(whole, sizeof whole, "%s/%s", prefixed->prefix, key);
    return prefixed->inner->get(prefixed->inner->context, whole, value, size, err);
}

/* The wrapper is freed by fabrics_part. */
static const struct rendezvous *set_prefixed(struct joined *joined, const struct rendezvous *inner,
                                             const char *prefix)
{
    struct prefixed *prefixed = xcalloc(1, sizeof *prefixed);
    *prefixed = (struct prefixed){inner, prefix, {prefixed, prefixed_put, prefixed_get}};
    joined->prefixed = prefixed;
    return &prefixed->rendezvous;
}

/* ---- joining ---- */

static double limit_of(const struct work *work)
{
    return work->hub ? LIMIT_THREADS_S : LIMIT_S + LIMIT_STEPS * work->trainer.compute_s;
}

static struct fabric_config config_of(const struct member *member, int count,
                                      const struct rendezvous *rendezvous)
{
    const struct work *work = member->work;
    return (struct fabric_config){.rank = member->rank,
                                  .count = count,
                                  .timeout_s = limit_of(work),
                                  .rendezvous = rendezvous,
                                  .interface = work->interface,
                                  .shared = work->hub,
                                  .accelerator = work->trainer.device->accelerator,
                                  .awaits_cb = trail_await};
}

static int join_fabric(struct work *work, const struct collectives *library,
                       const struct fabric_config *config, struct joined *out, struct error *err)
{
    int rc = library->open(config, &out->fabric, err);
    if (rc < 0)
        return rc;
    out->library = library;
    session_guard(work->session, library, out->fabric);
    return 0;
}

/* `rendezvous` must not be shared with another fabric. One rank alone needs no fabric. */
static int join_host(const struct member *member, int count, const struct rendezvous *rendezvous,
                     struct joined *out, struct error *err)
{
    const struct fabric_config config = config_of(member, count, rendezvous);
    return count > 1
               ? join_fabric(member->work, member->work->trainer.collectives, &config, out, err)
               : 0;
}

/* Leave a fabric, and zero it. */
static void fabrics_part(struct work *work, struct joined *joined)
{
    if (joined->fabric) {
        session_unguard(work->session, joined->fabric);
        joined->library->close(joined->fabric);
    }
    free(joined->prefixed);
    *joined = (struct joined){0};
}

/* ---- the fabric of programs ---- */

/* All ranks have to use the same library, so each learns whether all of them could load it. */
static int agree_to_use(const struct joined *host, int count, bool can, bool *all,
                        struct error *err)
{
    int *ranks = xcalloc((size_t)count, sizeof *ranks);
    float cannot[1] = {can ? 0 : 1};
    struct fabric_group *group;
    for (int i = 0; i < count; i++)
        ranks[i] = i;
    int rc = host->library->group(host->fabric, ranks, count, &group, err);
    if (rc == 0)
        rc = host->library->all_reduce(group, ELEMENT_F32, cannot, 1, REDUCTION_MAX, err);
    *all = !(cannot[0] > 0);
    free(ranks);
    return rc;
}

int fabrics_load(const char *name, const struct collectives **out, struct error *err)
{
    const void *found = NULL;
    char *symbol = xasprintf("collectives_%s", name);
    int rc = module_load(name, symbol, &found, err);
    free(symbol);
    if (rc == 0)
        *out = found;
    return rc;
}

/* The library that the device names if all ranks have it; otherwise staging through host memory. */
static int choose_library(const struct member *member, const struct joined *host,
                          const struct collectives **out, struct error *err)
{
    const char *name = member->work->trainer.device->collectives;
    struct error why = {""};
    const struct collectives *found = NULL;
    bool all = false;
    *out = &collectives_hosted;
    if (!name)
        return 0;
    bool can = fabrics_load(name, &found, &why) == 0;
    int rc = agree_to_use(host, plan_ranks(member->work->plan), can, &all, err);
    if (rc == 0 && can && all)
        *out = found;
    else if (rc == 0)
        log_line(LOG_WARN, "rank %d exchanges data through the host's memory, not by %s: %s",
                 member->rank, name, can ? "another rank lacks it" : why.text);
    return rc;
}

/* Join with this library; a staged one uses the host's fabric. */
static int join_library(const struct member *member, const struct collectives *library,
                        const struct joined *host, const struct rendezvous *rendezvous,
                        struct joined *out, struct error *err)
{
    struct work *work = member->work;
    struct fabric_config config = config_of(member, plan_ranks(work->plan), rendezvous);
    config.host = host->library;
    config.host_fabric = host->fabric;
    return join_fabric(work, library, &config, out, err);
}

/* Programs share the host's fabric, unless the device has memory of its own that the host's library
 * cannot access. */
static int join_program(const struct member *member, const struct joined *host, struct joined *out,
                        struct error *err)
{
    const struct work *work = member->work;
    const struct collectives *library;
    if (!host->fabric || !work->trainer.device->accelerator || host->library->in_streams) {
        *out = *host;
        return 0;
    }
    int rc = choose_library(member, host, &library, err);
    return rc == 0 ? join_library(member, library, host, &work->rendezvous, out, err) : rc;
}

/* Join `program` a second time, with all ranks of the plan; only if it differs from `host`. The
 * caller calls fabrics_part on *out, even after an error. */
static int fabrics_join_again(const struct fabrics *fabrics, const struct member *member,
                              struct joined *out, struct error *err)
{
    *out = (struct joined){0};
    const struct rendezvous *prefixed = set_prefixed(out, &member->work->rendezvous, "again");
    return join_library(member, fabrics->program.library, &fabrics->host, prefixed, out, err);
}

int fabrics_open(struct fabrics *out, const struct member *member, int givers, struct error *err)
{
    struct work *work = member->work;
    int ranks = plan_ranks(work->plan), rc = 0;
    *out = (struct fabrics){.work = work};
    if (givers > 0)
        rc = join_host(member, ranks + givers,
                       set_prefixed(&out->everybody, &work->rendezvous, "meeting"), &out->everybody,
                       err);
    if (rc < 0 || member->rank >= ranks)
        return rc;
    rc = join_host(member, ranks, &work->rendezvous, &out->host, err);
    return rc == 0 ? join_program(member, &out->host, &out->program, err) : rc;
}

/* In host memory, a rank that leaves is noticed by the others without this. */
void fabrics_abort(const struct fabrics *fabrics)
{
    if (fabrics->program.fabric && fabrics->program.fabric != fabrics->host.fabric)
        fabrics->program.library->abort(fabrics->program.fabric);
}

void fabrics_close(struct fabrics *fabrics)
{
    if (fabrics->program.fabric != fabrics->host.fabric)
        fabrics_part(fabrics->work, &fabrics->program);
    fabrics_part(fabrics->work, &fabrics->host);
    fabrics_part(fabrics->work, &fabrics->everybody);
}

/* ---- the network between hosts ---- */

/* The first rank of each host; the caller frees them. */
static int *lead_hosts(const struct work *work, int *count)
{
    const Gimbal__Assignment *assignment = work->assignment;
    int ranks = plan_ranks(work->plan);
    int *leaders = xcalloc((size_t)ranks, sizeof *leaders);
    *count = 0;
    for (int rank = 0; rank < ranks && rank < (int)assignment->n_ranks; rank++) {
        const char *host = assignment->ranks[rank]->host_address;
        int i = 0;
        while (i < *count && strcmp(assignment->ranks[leaders[i]]->host_address, host) != 0)
            i++;
        if (i == *count)
            leaders[(*count)++] = rank;
    }
    return leaders;
}

/* Whether this rank is one of them, and there are others. */
static bool leads_host(const struct links *links)
{
    int i = 0;
    while (i < links->count && links->ranks[i] != links->rank)
        i++;
    return i < links->count && links->count > 1;
}

/* Device links are measured over a separate fabric, so that the device memory its communicators
 * take is given back before the rank reserves what its plan says. */
static int measure_device_links(struct links *links, const struct member *member,
                                const struct fabrics *fabrics, struct error *err)
{
    struct joined again;
    int rc = fabrics_join_again(fabrics, member, &again, err);
    if (rc == 0) {
        links->library = again.library;
        links->fabric = again.fabric;
        links->device = member->work->trainer.device;
        rc = links_measure(links, err);
    }
    fabrics_part(member->work, &again);
    return rc;
}

int hosts_measure(const struct member *member, const struct fabrics *fabrics, struct error *err)
{
    const struct work *work = member->work;
    if (!work->assignment || !work->assignment->measures_links || !fabrics->host.fabric)
        return 0;
    struct links links = {.library = fabrics->host.library,
                          .fabric = fabrics->host.fabric,
                          .rank = member->rank,
                          .told_cb = session_tell_link,
                          .data = work->session};
    int *leaders = lead_hosts(work, &links.count), rc = 0;
    links.ranks = leaders;
    if (leads_host(&links)) {
        rc = links_measure(&links, err);
        if (rc == 0 && fabrics->program.fabric != fabrics->host.fabric)
            rc = measure_device_links(&links, member, fabrics, err);
    }
    free(leaders);
    return rc;
}

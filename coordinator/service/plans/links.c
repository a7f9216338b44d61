/* links.c - what ranks have measured between their hosts, and what follows from it for plans.
 *
 * A probe sees one machine only and assumes that other hosts are as near as its own devices. So the
 * first job on hosts that are new to each other measures the links between them before its first
 * step. Later plans know them from the start; for this job another plan is searched while it
 * trains, and the job moves if that pays.
 *
 * Data in the memory of hosts and data in that of devices travel on different ways at different
 * speeds, and jobs on devices send both: programs exchange what is in devices, copies what is in
 * hosts. So a link is kept per kind of device, where that of processors is for the hosts' memory.
 *
 * A host counts as near to all others as it is to its nearest neighbour. Links are known for the
 * life of the hosts' workers and not stored: a restarted coordinator has them measured again. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"
#include "common/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Figures of links are rounded to powers of this, so that links that are alike stay alike. */
#define CLASS_STEP 1.25

/* The host of the rank; NULL: its worker is not there. */
static const char *host_of(const struct service *service, const struct job *job, size_t rank)
{
    const struct worker *worker =
        membership_find(service->membership, job->ranks[rank].device.worker);
    return worker ? worker->report->host : NULL;
}

/* The kind of the rank's device, whose worker has to be there. */
static enum hardware_kind kind_of(const struct service *service, const struct job *job, size_t rank)
{
    return service_has_host_memory(service, job, rank) ? HARDWARE_CPU : HARDWARE_GPU;
}

static double rounded(double value)
{
    return value > 0 ? pow(CLASS_STEP, round(log(value) / log(CLASS_STEP))) : 0;
}

bool service_network(const struct service *service, const char *host, enum hardware_kind kind,
                     struct profile_link *out)
{
    bool known = false;
    for (size_t i = 0; i < service->link_count; i++) {
        const struct host_link *link = &service->links[i];
        if (link->kind != kind ||
            (strcmp(link->hosts[0], host) != 0 && strcmp(link->hosts[1], host) != 0))
            continue;
        if (!known || link->link.seconds_per_byte < out->seconds_per_byte)
            *out = link->link;
        known = true;
    }
    return known;
}

void service_mark_network(const struct service *service, struct device_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct device_view *view = &views[i];
        service_network(service, view->host, view->device->kind, &view->network);
        service_network(service, view->host, HARDWARE_CPU, &view->host_network);
    }
}

static void drop(struct service *service, size_t i)
{
    free(service->links[i].hosts[0]);
    free(service->links[i].hosts[1]);
    service->links[i] = service->links[--service->link_count];
}

void service_forget_network(struct service *service, const char *worker)
{
    const struct worker *lost = membership_find(service->membership, worker);
    for (size_t i = service->link_count; i-- > 0;)
        if (!lost || strcmp(service->links[i].hosts[0], lost->report->host) == 0 ||
            strcmp(service->links[i].hosts[1], lost->report->host) == 0)
            drop(service, i);
}

void service_finish_network(struct service *service)
{
    while (service->link_count > 0)
        drop(service, service->link_count - 1);
    free(service->links);
}

/* During a replan nothing is measured, since executors stand still meanwhile. */
bool service_wants_links(const struct service *service, const struct job *job)
{
    const char *first = job->rank_count > 0 ? host_of(service, job, 0) : NULL;
    bool several = false, unknown = false;
    struct profile_link link;
    for (size_t i = 0; i < job_trainers(job) && first; i++) {
        const char *host = host_of(service, job, i);
        several = several || (host && strcmp(host, first) != 0);
        unknown =
            unknown || (host && !service_network(service, host, kind_of(service, job, i), &link));
    }
    return several && unknown && !dossier_find(service, job->id)->replan.going;
}

static bool is_between(const struct host_link *link, const char *a, const char *b)
{
    return (strcmp(link->hosts[0], a) == 0 && strcmp(link->hosts[1], b) == 0) ||
           (strcmp(link->hosts[0], b) == 0 && strcmp(link->hosts[1], a) == 0);
}

/* Keep a link in place of what was measured before between the same two hosts. */
static void keep(struct service *service, const char *a, const char *b, enum hardware_kind kind,
                 const struct profile_link *link)
{
    size_t i = 0;
    while (i < service->link_count &&
           (service->links[i].kind != kind || !is_between(&service->links[i], a, b)))
        i++;
    if (i == service->link_count) {
        service->links = grow(service->links, service->link_count, &service->link_capacity,
                              sizeof *service->links);
        service->links[service->link_count++] =
            (struct host_link){.hosts = {xstrdup(a), xstrdup(b)}, .kind = kind};
    }
    service->links[i].link = *link;
}

static void tell(struct service *service, const struct job *job, const Gimbal__LinkRecord *record)
{
    const char *own = job->ranks[record->rank].device.worker,
               *peer = job->ranks[record->peer].device.worker;
    char latency[32];
    json_t *json = json_pack("{s:s, s:s, s:s, s:f, s:f}", "node", own, "peer", peer, "memory",
                             record->in_devices ? "device" : "host", "latency_s", record->latency_s,
                             "seconds_per_byte", record->seconds_per_byte);
    service_tell(service, "link-measured", job->id, own, json,
                 "%s: between %s%s and %s %.3g GB/s, %s a message, measured by its ranks", job->id,
                 record->in_devices ? "devices of " : "", own, peer,
                 1e-9 / record->seconds_per_byte,
                 units_print_seconds(latency, sizeof latency, record->latency_s));
}

int service_hear_link(struct service *service, struct rpc_call *call,
                      const Gimbal__LinkRecord *record, struct error *err)
{
    const struct job *job;
    int rc = service_find_rank(service, call, record->job, record->epoch, &record->rank, &job, err);
    if (rc < 0)
        return rc;
    const char *own = host_of(service, job, record->rank);
    const char *peer = record->peer < job->rank_count ? host_of(service, job, record->peer) : NULL;
    if (!own || !peer || strcmp(own, peer) == 0 || !(record->latency_s >= 0) ||
        !(record->seconds_per_byte > 0) || !isfinite(record->latency_s + record->seconds_per_byte))
        return error_set(err, -EINVAL, "rank %u of %s does not report a link between two hosts",
                         record->rank, record->job);
    struct profile_link link = {rounded(record->latency_s), rounded(record->seconds_per_byte)};
    enum hardware_kind kind =
        record->in_devices ? kind_of(service, job, record->rank) : HARDWARE_CPU;
    keep(service, own, peer, kind, &link);
    tell(service, job, record);
    service_forget_spares(service);
    dossier_find(service, job->id)->links_due = true;
    return 0;
}

void service_weigh_links(struct service *service, const struct job *job)
{
    struct dossier *dossier = dossier_find(service, job->id);
    if (!dossier->links_due || job->state != JOB_RUNNING)
        return;
    dossier->links_due = false;
    if (job->replans && !job->given[0])
        service_plan_again(service, job);
}

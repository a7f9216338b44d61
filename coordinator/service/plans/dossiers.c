/* dossiers.c - what is known of each job beside its record: what it asked for, and its plan. */
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dossier *dossier_find(const struct service *service, const char *job)
{
    for (size_t i = service->dossier_count; i-- > 0;)
        if (strcmp(service->dossiers[i]->id, job) == 0)
            return service->dossiers[i];
    return NULL;
}

struct dossier *dossier_add(struct service *service, const char *job, struct job_config *config)
{
    struct dossier *dossier = xcalloc(1, sizeof *dossier);
    snprintf(dossier->id, sizeof dossier->id, "%s", job);
    dossier->config = config;
    service->dossiers = grow(service->dossiers, service->dossier_count, &service->dossier_capacity,
                             sizeof(struct dossier *));
    service->dossiers[service->dossier_count++] = dossier;
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

void dossiers_prune(struct service *service)
{
    size_t kept = 0;
    for (size_t i = 0; i < service->dossier_count; i++) {
        struct dossier *dossier = service->dossiers[i];
        if (jobs_find(service->jobs, dossier->id)) {
            service->dossiers[kept++] = dossier;
            continue;
        }
        telemetry_forget(service->telemetry, dossier->id);
        dossier_destroy(dossier);
    }
    service->dossier_count = kept;
}

void dossiers_finish(struct service *service)
{
    for (size_t i = 0; i < service->dossier_count; i++)
        dossier_destroy(service->dossiers[i]);
    free(service->dossiers);
}

/* dossiers.h - what is known of each job beside its record in jobs/. */
#ifndef COORDINATOR_SERVICE_DOSSIERS_H
#define COORDINATOR_SERVICE_DOSSIERS_H

#include "common/config/job.h"
#include "coordinator/jobs/jobs.h"
#include "coordinator/pace/pace.h"
#include "coordinator/planning/planning.h"
#include "coordinator/service/replans.h"
#include "coordinator/stalls/stalls.h"

struct service;

/* A plan for these devices, in whatever order; plan NULL: there is none. */
struct spare {
    struct device_ref *devices;
    size_t count;
    uint64_t fingerprint; /* of the devices, in whatever order */
    struct planning planning;
};

/* What was searched before it is needed, while an epoch runs. */
struct spares {
    struct spare *items;
    size_t count, capacity;
    uint64_t epoch;
    bool asked; /* one is searched */
};

/* A rank of the job ran out of memory there: so many bytes of it are planned at most. */
struct scarce_device {
    struct device_ref device;
    uint64_t memory_max;
};

struct dossier {
    char id[JOB_ID_SIZE];
    struct job_config *config; /* NULL: of an ended job, or one no longer understood */
    struct planning planning;  /* of the current epoch; plan NULL before there is one */
    bool planned_before;       /* it was there when it was needed */
    struct corpus *corpus;     /* as its first rank reported it; NULL before */
    struct error refusal;      /* why no plan can be; "" where there is one, or may be one */
    enum job_state told_state; /* what events have said */
    enum job_reason told_reason;
    uint64_t told_step, told_ms;
    struct replan replan;
    struct stalls stalls;
    struct pace pace;
    struct spares spares;
    struct scarce_device *scarce;
    size_t scarce_count, scarce_capacity;
    uint64_t growth_epoch; /* in which so many devices were last looked at */
    size_t growth_devices;
    bool links_due;        /* its ranks have measured what its plan did not know */
    uint64_t unsaved_step; /* the newest that was told to have no checkpoint */
};

/* find lends, NULL when unknown; add takes config. */
struct dossier *dossier_find(const struct service *service, const char *job);
struct dossier *dossier_add(struct service *service, const char *job, struct job_config *config);
/* Let go of those whose job is forgotten. */
void dossiers_prune(struct service *service);
void dossiers_finish(struct service *service);

#endif

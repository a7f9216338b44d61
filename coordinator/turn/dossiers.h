/* dossiers.h - what is known of each job besides its record in jobs/: what it asked for, its plan,
 * plans that are ready in case it loses devices, and what its ranks have shown of theirs. */
#ifndef COORDINATOR_TURN_DOSSIERS_H
#define COORDINATOR_TURN_DOSSIERS_H

#include "common/config/job.h"
#include "coordinator/pace/pace.h"
#include "coordinator/planning/planning.h"
#include "coordinator/stalls/stalls.h"
#include "coordinator/turn/replan.h"
#include "coordinator/turn/state.h"

/* A plan prepared for these devices, in any order; plan NULL: there is none. */
struct spare {
    struct device_ref *devices;
    size_t count;
    uint64_t fingerprint; /* of the set of devices, independent of order */
    struct planning planning;
};

/* Plans searched ahead of need while an epoch runs. */
struct spares {
    struct spare *items;
    size_t count, capacity;
    uint64_t epoch;
    bool asked; /* a search is under way */
};

/* A device on which a rank of the job ran out of memory: plans use at most memory_max bytes of
 * it. */
struct scarce_device {
    struct device_ref device;
    uint64_t memory_max;
};

struct dossier {
    char id[JOB_ID_SIZE];
    struct job_config *config; /* NULL: the job has ended, or is no longer understood */
    struct planning planning;  /* of the current epoch; plan NULL if there is none yet */
    bool planned_before;       /* the plan had been prepared when it was needed */
    struct corpus *corpus;     /* as its first rank reported it; NULL before */
    struct error refusal;      /* why there can be no plan; "" if there is or may be one */
    enum job_state told_state; /* what events have told so far */
    enum job_reason told_reason;
    uint64_t told_step, told_ms;
    struct replan replan;
    struct stalls stalls;
    struct pace pace;
    struct spares spares;
    struct scarce_device *scarce;
    size_t scarce_count, scarce_capacity;
    /* when a trial on more devices was last made: the epoch, and the number of devices */
    uint64_t growth_epoch;
    size_t growth_devices;
    bool links_due;        /* its ranks have measured links that its plan did not know */
    uint64_t unsaved_step; /* the newest step that was reported to have no checkpoint */
};

/* Initialize to zero. */
struct dossiers {
    struct dossier **items;
    size_t count, capacity;
};
void dossiers_finish(struct dossiers *dossiers);

/* find lends, NULL if unknown; add takes ownership of config. */
struct dossier *dossier_find(const struct state *state, const char *job);
struct dossier *dossier_add(struct state *state, const char *job, struct job_config *config);
/* Drop the dossiers of jobs that were forgotten. */
void dossiers_prune(struct state *state);

/* The spare plan for exactly these devices; NULL: none was searched for. */
struct spare *spares_find(const struct spares *spares, const struct device_ref *devices,
                          size_t count);
/* Keep what a search for these devices has found, instead of what was known for them; takes
 * ownership of the devices and the planning. */
void spares_keep(struct spares *spares, struct device_ref *devices, size_t count,
                 const struct planning *planning);
/* Take a plan for exactly the devices granted to the job, owned by the caller; false: there is
 * none. */
bool spares_take(struct spares *spares, const struct job *job, struct planning *out);
/* Drop the plans, because devices are not what they were; and everything. */
void spares_drop(struct spares *spares);
void spares_clear(struct spares *spares);

#endif

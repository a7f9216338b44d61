/* modes.h - what a gimbal-executor process can be. */
#ifndef WORKER_EXECUTOR_MODES_H
#define WORKER_EXECUTOR_MODES_H

#include "common/base/error.h"

#include "worker/executor/cpuset.h"

#include <stdbool.h>
#include <stdint.h>

struct executor_options {
    int channel;      /* descriptor */
    int trail;        /* descriptor, of worker/trail; -1: none */
    int state;        /* descriptor of the file for the state, or -1 */
    int local;        /* ranks as threads; 0: not */
    const char *job;  /* file: what to train */
    const char *plan; /* file: the plan's JSON */
    bool probe;
    bool links;           /* of the probe: those between the devices that are named */
    const char *devices;  /* cores of each device, or NULL */
    const char *device;   /* what the ranks compute on, or NULL: the cores */
    const char *list;     /* the kind of devices to be listed, "": all; or NULL */
    const char *verify;   /* folder of a checkpoint to check, or NULL */
    const char *export;   /* of one to export, of a job, or NULL */
    const char *out;      /* where to */
    const char *generate; /* of one whose model is to write, of a job, or NULL */
    const char *prompt;   /* what it goes on with */
    int bytes;            /* how much it writes */
    double temperature;
    uint64_t seed;
    double crowd;           /* devices that share a core, for the probe */
    const char *checkpoint; /* local: in place of the job's checkpoint.dir, or NULL */
    bool resume;            /* local: go on from the newest checkpoint */
    const char *fabric;     /* collectives for the probe, or NULL for the default */
    const char *kept;       /* folder of measurements that are kept, for the probe, or NULL */
    bool measure;           /* of the probe: even where one is kept */
};

/* Each returns when its work is done, failed or was cancelled (-ECANCELED), and has told the
 * other side of the channel. */
int executor_rank(const struct executor_options *options, struct error *err);
int executor_local(const struct executor_options *options, struct error *err);
int executor_probe(const struct executor_options *options, struct error *err);
int executor_links(const struct executor_options *options, struct error *err);
int executor_generate(const struct executor_options *options, struct error *err);
int executor_list(const struct executor_options *options, struct error *err);

/* The sets of --devices, or else shares of what this process may use; `count` of them, unless it
 * is 0. Returns how many. */
int modes_device_sets(const struct executor_options *options, int count,
                      cpu_set_t sets[CPUSETS_MAX], struct error *err);

#endif

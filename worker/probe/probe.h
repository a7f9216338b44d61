/* probe.h - measures how fast devices are, with all of them busy at once: they may share memory and
 * caches, and the job will use all of them too. */
#ifndef WORKER_PROBE_PROBE_H
#define WORKER_PROBE_PROBE_H

#include "common/profile/profile.h"
#include "worker/collectives/collective.h"
#include "worker/hardware/cpuset.h"
#include "worker/kernels/kernels.h"

/* Measures `count` devices with one thread each bound to its cores, and links by `collectives`
 * among them (among two, where there is one device). Fills one profile per device. Takes a few
 * seconds. Everything is the engine's own: training steps of small models in f32 and in bf16, timed
 * instruction by instruction, in the time that the thread had the processor; `crowd` devices, of
 * this process or of others, share a core and all will train, so each is so many times slower.
 * *share: of the time that kernels took, the least that one of these threads had a processor for.
 */
int probe_run(const cpu_set_t *sets, int count, const struct device *device,
              const struct collectives *collectives, double crowd, struct profile *out,
              double *share, struct error *err);

/* A device with memory of its own, measured alone; 0: not measured. */
struct probe_figures {
    uint64_t memory_bytes;   /* that a rank can have */
    uint64_t library_bytes;  /* of that, for the device's libraries; the rest is for reservations */
    double flops, bandwidth; /* of the best matrix product; of reads and writes of its memory */
    double upload, download; /* bytes per second from pinned host memory, and back */
};

/* Measure its kernels by steps of models that grow until they keep it busy. Links are those of a
 * device whose data leaves it through host memory: `host`, which is what processes of this machine
 * reach among themselves, plus both copies. `crowd` ranks share the device. -ENOMEM, -EIO,
 * -ENODEV. */
int probe_device(const struct device *device, double crowd, struct profile_link host,
                 struct profile *out, struct probe_figures *figures, struct error *err);

/* Measure the links between `count` devices, 2 or more, that this process sees: by all-reduces of
 * two sizes in their memory over the library, as the slowest sees it. If one device fails, its
 * error is returned: -ENODEV, -ENOMEM, -EIO, or that of the library. */
int probe_peers(const struct device *device, const struct collectives *library, int count,
                struct profile_link *out, struct error *err);

#endif

/* probe.h - measures how fast the devices of this machine compute and exchange data. Devices made
 * of cores are measured while all of them are busy, because they may share memory and caches, and a
 * job will use all of them at once too. Each function returns 0 or a negative errno, with words in
 * err. */
#ifndef WORKER_PROBE_PROBE_H
#define WORKER_PROBE_PROBE_H

#include "common/profile/profile.h"
#include "worker/collectives/collective.h"
#include "worker/hardware/cpuset.h"
#include "worker/kernels/kernels.h"

/* Measure `count` devices, with one thread each that is bound to its cores, sets[i], and the links
 * between them over `collectives` (if there is one device, between two threads on its cores). Fills
 * out[i] for each device, and takes a few seconds.
 *
 * What is measured is the engine itself: training steps of small models in f32 and in bf16, timed
 * instruction by instruction in the processor time of the thread: as if each device had its cores
 * for itself. How many share them depends on the plan, and is the planner's to count.
 *
 * *share: the fraction of the time spent in kernels for which a thread had its processor, of the
 * thread that had the least. */
int probe_run(const cpu_set_t *sets, int count, const struct device *device,
              const struct collectives *collectives, struct profile *out, double *share,
              struct error *err);

/* What a device with memory of its own can do, measured alone. 0: not measured. */
struct probe_figures {
    uint64_t memory_bytes;  /* that a rank can use */
    uint64_t library_bytes; /* of that, for the device's libraries; the rest is for reservations */
    /* Per second: operations of f32 matrix products; bytes of its memory read and written. */
    double flops, bandwidth;
    double upload, download; /* bytes per second from pinned host memory, and back */
};

/* Measure such a device. Kernels are timed in steps of models that grow until they keep it busy; if
 * bf16 fails, a warning is logged and bf16 is planned as f32. Links are computed for data that
 * leaves the device through host memory: `host`, the link between processes of this machine, plus
 * the copies up and down. `crowd` ranks share the device, so each is that many times slower.
 * -ENOMEM, -EIO, -ENODEV. */
int probe_device(const struct device *device, double crowd, struct hardware_link host,
                 struct profile *out, struct probe_figures *figures, struct error *err);

/* Measure the link between `count` devices, at least 2, that this process sees: all-reduces of two
 * sizes in device memory over the library. *out is what the slowest device measures. The error of
 * the first device that fails: -ENODEV, -ENOMEM, -EIO, or that of the library. */
int probe_peers(const struct device *device, const struct collectives *library, int count,
                struct hardware_link *out, struct error *err);

#endif

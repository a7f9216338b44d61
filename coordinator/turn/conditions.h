/* conditions.h - what is known of devices beside their reports: which are slow, how near hosts are
 * to each other, and which have less memory than they say.
 *
 * A probe sees one machine only and assumes that other hosts are as near as its own devices. So the
 * first job on hosts that are new to each other measures the links between them before its first
 * step, and later plans know them from the start. Data in the memory of hosts and data in that of
 * devices travel on different ways at different speeds, and jobs on devices send both: programs
 * exchange what is in devices, copies what is in hosts. So a link is kept per kind of device, where
 * that of processors is for the hosts' memory. A host counts as near to all others as it is to its
 * nearest neighbour.
 *
 * A device may have less memory than its worker says: others use it too, or a limit is not visible.
 * How much less is not known, only that the plan's figure was too much. So the next plan has to do
 * with a tenth less than that, and so on until one works.
 *
 * All of this is known for the life of workers, the memory also of a job, and not stored: a
 * restarted coordinator has it measured again. */
#ifndef COORDINATOR_TURN_CONDITIONS_H
#define COORDINATOR_TURN_CONDITIONS_H

#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/state.h"

/* A device that is slower than it should be, by this factor. */
struct slow_device {
    struct device_ref device;
    double factor;
};

/* The link between two hosts, for data in the memory of devices of this kind; a processor's memory
 * is the host's. */
struct host_link {
    char *hosts[2];
    enum hardware_kind kind;
    struct hardware_link link;
};

/* Initialize to zero. */
struct conditions {
    struct slow_device *slow;
    size_t slow_count, slow_capacity;
    struct host_link *links;
    size_t link_count, link_capacity;
};
void conditions_finish(struct conditions *conditions);

/* membership_devices() with what is known of them: every search sees devices so. */
size_t conditions_views(const struct state *state, struct device_view **out);
/* The devices of `all` that the job trains on, and those of a kind that are free, in the order of
 * `all`. Return their number; `out` has room for count. */
size_t conditions_own_devices(const struct job *job, const struct device_view *all, size_t count,
                              struct device_view *out);
size_t conditions_free_devices(const struct device_view *all, size_t count, enum hardware_kind kind,
                               struct device_view *out);

/* A device's slowdown factor, and whether it counts as slow. */
double conditions_slowdown(const struct state *state, const struct device_ref *ref);
bool conditions_is_slow(const struct state *state, const struct device_ref *ref);
/* A factor of 1 or less: it is slow no more. */
void conditions_set_slowdown(struct state *state, const struct device_ref *ref, double factor);
/* Forget the slowness of a worker's instance. */
void conditions_forget_slow(struct state *state, uint64_t instance);

/* Whether the link of this host to others has been measured, for data of devices of this kind. */
bool conditions_network(const struct state *state, const char *host, enum hardware_kind kind,
                        struct hardware_link *out);
/* The host of the rank, NULL: its worker is not there; and the kind of its device if it is. */
const char *conditions_host(const struct state *state, const struct job *job, size_t rank);
enum hardware_kind conditions_kind(const struct state *state, const struct job *job, size_t rank);
/* Keep a link, its figures rounded, in place of what was measured before between the two hosts. */
void conditions_keep_link(struct state *state, const char *a, const char *b,
                          enum hardware_kind kind, const struct hardware_link *link);
void conditions_forget_network(struct state *state, const char *worker);
/* Whether the ranks of this epoch shall measure their links. */
bool conditions_wants_links(const struct state *state, const struct job *job);

/* Whether the memory of the rank's device is the host's memory. */
bool conditions_has_host_memory(const struct state *state, const struct job *job, size_t rank);
/* A rank of the job ran out of memory. Returns how many bytes of its device plans may use from now
 * on; 0: all. */
uint64_t conditions_lower_memory(struct state *state, const struct job *job, size_t rank);
/* Whether the rank's device has as much memory for the job as the plan needs; and write the limits
 * to views of devices. */
bool conditions_memory_serves(const struct dossier *dossier, const struct plan *plan, int rank,
                              const struct device_ref *device);
void conditions_limit_memory(const struct dossier *dossier, struct device_view *views,
                             size_t count);

#endif

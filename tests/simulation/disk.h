/* disk.h - the simulated disks of coordinators, behind coordinator/store/store.h. */
#ifndef TESTS_SIMULATION_DISK_H
#define TESTS_SIMULATION_DISK_H

#include "coordinator/store/store.h"
#include "tests/simulation/world.h"

struct disk_plan {
    uint64_t number;
    uint32_t epoch;
    struct store_plan plan;
};

struct disk_corpus {
    uint64_t number;
    struct corpus *corpus;
};

struct disk_steps {
    uint64_t number;
    struct step_point *points;
    size_t count;
};

struct disk_event {
    void *bytes;
    size_t size;
};

/* What is durable. */
struct disk {
    uint64_t cluster, term;
    struct disk_corpus *corpora; /* by number of the job */
    size_t corpus_count, corpus_capacity;
    struct job **jobs; /* by number */
    size_t job_count, job_capacity;
    struct disk_plan *plans; /* of the newest epoch of each job */
    size_t plan_count, plan_capacity;
    struct disk_steps *steps; /* that each job has measured */
    size_t steps_count, steps_capacity;
    struct worker **workers; /* by name */
    size_t worker_count, worker_capacity;
    struct disk_event *events; /* by revision - 1 */
    size_t event_count, event_capacity;
};

/* What a coordinator has put, and not yet committed. */
struct store {
    struct disk *disk;
    struct actor *owner;
    struct put *puts;
    size_t put_count, put_capacity;
    int failed;
    enum store_room room; /* what it said last */
    uint64_t full_until_ms, looked_ms;
};

struct disk *disk_create(void);
struct disk *disk_copy(const struct disk *disk);
void disk_destroy(struct disk *disk);

struct store_plan disk_copy_plan(const struct store_plan *plan);
struct disk_corpus disk_copy_corpus(uint64_t number, const struct corpus *from);

/* NULL when there is none. */
const struct job *disk_job(const struct disk *disk, const char *id);
const struct worker *disk_worker(const struct disk *disk, const char *name);

/* A store of that actor on that disk. */
struct store *store_on(struct disk *disk, struct actor *owner);
/* Puts that no commit has made durable. */
size_t store_pending(const struct store *store);
bool store_failed(const struct store *store);

#endif

/* store.h - what must survive the coordinator: jobs, plans, workers, events, the term, and who
 * may call.
 *
 * Changes are put, and all that were put since the last commit become durable together: either
 * the disk has all of them or none. A put does not fail; what went wrong is told by the commit,
 * and by every commit after it, because a disk that has failed once cannot be trusted to hold
 * what was put: whoever hears of it stops, and is started again.
 *
 * One SQLite database, DIRECTORY/store.db, in WAL mode with synchronous=FULL, for one process at
 * a time and on a local disk. Times are milliseconds of the calendar. One thread. */
#ifndef COORDINATOR_STORE_STORE_H
#define COORDINATOR_STORE_STORE_H

#include "common/base/error.h"
#include "common/base/histogram.h"
#include "coordinator/corpus/corpus.h"
#include "coordinator/identity/identity.h"
#include "coordinator/jobs/job.h"
#include "coordinator/membership/membership.h"
#include "proto/coordinator.pb-c.h"

struct store;

/* Open or make the store in directory, which is made, for its owner only, where it is missing.
 * *out is yours. -EBUSY: another process has it open. -ENOTSUP: it is on a network file system.
 * -EPROTO: a newer release wrote it. -EIO, -ENOSPC, -EACCES...: in words. */
int store_open(const char *directory, struct store **out, struct error *err);
/* What was put and not committed is forgotten. Accepts NULL. */
void store_close(struct store *store);

/* A random number that the store was made with: it names the cluster. */
uint64_t store_cluster(const struct store *store);
/* Begin a term: one more than any that was begun here before; durable when it returns. */
int store_begin_term(struct store *store, uint64_t *term, struct error *err);

/* Make durable what was put; nothing to do when there is nothing. After a failure it fails for
 * ever, with the same words. */
int store_commit(struct store *store, struct error *err);
/* How long commits took that had something to do, in nanoseconds; lent. */
const struct histogram *store_commit_ns(const struct store *store);

/* All that is stored now, and when that was, as the bytes of a file; what was put is committed. */
struct store_copy {
    unsigned char *bytes;
    size_t size;
};
int store_copy(struct store *store, uint64_t now_ms, struct store_copy *out, struct error *err);
/* Accepts a zeroed one. */
void store_copy_finish(struct store_copy *copy);

struct store_restored {
    uint64_t cluster, copied_ms;
    uint64_t term;      /* the next one is higher */
    uint64_t jobs_open; /* that had not ended */
    char *aside;        /* where the store is that was there; yours, NULL: none was */
};
/* Put into directory what store_copy made, so that no number of the cluster is used twice. A store
 * that is there is set aside. -EBUSY: it is in use; -EEXIST: it is another cluster's; -EINVAL: the
 * file is no such copy; as store_open. On failure everything is as it was. */
int store_restore(const char *directory, const char *file, uint64_t now_ms,
                  struct store_restored *out, struct error *err);

/* A plan as it was assigned. */
struct store_plan {
    char *json, *candidates;
    uint64_t *hashes; /* of each rank's program */
    size_t rank_count;
    double *compute_s; /* as planning's, of each rank; NULL: an older release stored it */
};

/* The job as it is now, with its ranks. */
void store_put_job(struct store *store, const struct job *job);
/* The plan of the job's epoch, in the place of those before it. */
void store_put_plan(struct store *store, const struct job *job, const char *id,
                    const struct store_plan *plan);
/* What its ranks read, once. */
void store_put_corpus(struct store *store, const struct job *job, const struct corpus *corpus);
/* A checkpoint that is listed from now on. The oldest of the job's beyond `keep` are not any
 * more, nor damaged ones that are no further than this one. */
struct store_checkpoint {
    uint64_t step;
    uint32_t epoch;
    const char *folder; /* its path */
    uint64_t bytes, unix_ms;
    bool damaged; /* nothing begins from it any more */
};
void store_put_checkpoint(struct store *store, const struct job *job,
                          const struct store_checkpoint *checkpoint, size_t keep);
/* The one of this step and epoch is damaged: it stays, and is not the newest any more. */
void store_damage_checkpoint(struct store *store, const struct job *job, uint64_t step,
                             uint32_t epoch);
/* A value of the rendezvous that is to outlive the process; and none of a job's any more of which
 * the key begins with the prefix. */
void store_put_value(struct store *store, const char *job, uint64_t epoch, const char *key,
                     const void *value, size_t size);
void store_delete_values(struct store *store, const char *job, const char *prefix);
void store_put_worker(struct store *store, const struct worker *worker);
void store_delete_worker(struct store *store, const char *name);
/* Revisions grow by one; the oldest events are dropped beyond STORE_EVENTS_MAX. */
void store_put_event(struct store *store, uint64_t revision, const Gimbal__Event *event);
#define STORE_EVENTS_MAX 100000

void store_put_token(struct store *store, const struct identity_token *token);
void store_put_credential(struct store *store, const struct identity_credential *credential);
/* All of both, into identity. */
int store_read_identity(struct store *store, struct identity *identity, struct error *err);

/* Hand over what is stored, item by item, lent to the callback; a callback that returns a
 * negative errno ends it. Else -EIO, or -EPROTO for what cannot be understood. */
typedef int (*store_worker_cb)(void *data, const struct worker *worker, struct error *err);
int store_read_workers(struct store *store, store_worker_cb callback, void *data,
                       struct error *err);
/* All jobs that have not ended, and the newest ended_max of those that have, by number. */
typedef int (*store_job_cb)(void *data, const struct job *job, struct error *err);
int store_read_jobs(struct store *store, size_t ended_max, store_job_cb callback, void *data,
                    struct error *err);
/* One job, yours. -ENOENT in words. */
int store_find_job(struct store *store, const char *id, struct job **out, struct error *err);
/* The job that the user submitted with this key, yours; *out is NULL when there is none. */
int store_find_key(struct store *store, const char *user, const char *key, struct job **out,
                   struct error *err);
/* The number that the next job is to have: one more than any that was ever stored. */
int store_next_number(struct store *store, uint64_t *number, struct error *err);
/* Of the job's epoch; *out is yours to finish, and all zero where none was stored. */
int store_read_plan(struct store *store, const struct job *job, struct store_plan *out,
                    struct error *err);
/* Yours; NULL where none was stored. */
int store_read_corpus(struct store *store, const struct job *job, struct corpus **out,
                      struct error *err);
/* Those that are listed and those that are damaged, the newest first; yours: an array of which the
 * folders are to be freed too, by store_checkpoints_free. */
int store_read_checkpoints(struct store *store, const struct job *job,
                           struct store_checkpoint **out, size_t *count, struct error *err);
void store_checkpoints_free(struct store_checkpoint *checkpoints, size_t count);
/* A callback that returns a negative errno ends it. */
typedef int (*store_value_cb)(void *data, const char *job, uint64_t epoch, const char *key,
                              const void *value, size_t size, struct error *err);
int store_read_values(struct store *store, store_value_cb callback, void *data, struct error *err);
void store_plan_finish(struct store_plan *plan);

struct store_query {
    const char *job, *node; /* "": any */
    uint64_t after;         /* revision */
    size_t count_max;
    const char *except; /* a kind of events that are not wanted; NULL: all are */
    bool newest; /* of more than count_max the newest, else the oldest; in order either way */
};
/* The callback returns negative to end it. */
typedef int (*store_event_cb)(void *data, uint64_t revision, const Gimbal__Event *event);
int store_read_events(struct store *store, const struct store_query *query, store_event_cb callback,
                      void *data, struct error *err);

#endif

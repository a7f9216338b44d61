/* store.h - what must survive the coordinator: jobs, plans, workers, events, the term, and who may
 * call.
 *
 * Changes are put, and store_commit() makes all changes since the last commit durable together: the
 * disk has either all of them or none. A put cannot fail; errors are reported by the commit, and by
 * every commit after it, because a disk that has failed once cannot be trusted to hold what was
 * put. The coordinator then stops and is started again. A full disk is no such failure: it is
 * noticed before anything is put, store_room().
 *
 * The store is one SQLite database, DIRECTORY/store.db, in WAL mode with synchronous=FULL, for one
 * process at a time and on a local disk. Times are milliseconds of the calendar. Not
 * thread-safe. */
#ifndef COORDINATOR_STORE_STORE_H
#define COORDINATOR_STORE_STORE_H

#include "common/base/error.h"
#include "common/base/histogram.h"
#include "coordinator/corpus/corpus.h"
#include "coordinator/identity/identity.h"
#include "coordinator/jobs/job.h"
#include "coordinator/membership/membership.h"
#include "coordinator/telemetry/telemetry.h"
#include "proto/coordinator.pb-c.h"

struct store;

/* Open or create the store in a directory, which is created for its owner only if it is missing.
 * The caller owns *out. -EBUSY: another process has it open. -ENOTSUP: it is on a network file
 * system. -EPROTO: a newer release wrote it, or it is damaged. Otherwise -EIO, -ENOSPC, -EACCES and
 * others, with a message. */
int store_open(const char *directory, struct store **out, struct error *err);
/* Uncommitted changes are lost. Accepts NULL. */
void store_close(struct store *store);

/* A random number drawn when the store was created; it identifies the cluster. */
uint64_t store_cluster(const struct store *store);
/* Begin a term, one higher than any before; durable on return. */
int store_begin_term(struct store *store, uint64_t *term, struct error *err);

/* Make all changes durable; does nothing if there are none. After a failure it keeps failing with
 * the same message. */
int store_commit(struct store *store, struct error *err);
/* Whether anything was put since the last commit. */
bool store_changed(const struct store *store);
/* Whether the disk has room. Look before anything is put: a commit fails for lack of space only if
 * more than STORE_TURN_BYTES were put at once, or if this had said that there is none. */
enum store_room {
    STORE_ROOM_ENOUGH,
    STORE_ROOM_LITTLE, /* the disk is full: what was set aside is for what is under way */
    STORE_ROOM_NONE,   /* nothing may be put */
};
#define STORE_TURN_BYTES ((int64_t)8 << 20)
/* With words that name the file unless there is enough. The disk is looked at again when that is
 * due, which store_room_next_ms() says (UINT64_MAX: not as long as there is enough). */
enum store_room store_room(struct store *store, uint64_t now_ms, struct error *err);
uint64_t store_room_next_ms(const struct store *store);
/* Durations of commits that had something to write, in nanoseconds; lent. */
const struct histogram *store_commit_ns(const struct store *store);

/* Everything that is stored, and when that was, as the bytes of a file. What was put is committed
 * first. *out is set on success only and released by store_copy_finish(). Errors of store_commit();
 * -ENOMEM. */
struct store_copy {
    unsigned char *bytes;
    size_t size;
};
int store_copy(struct store *store, uint64_t now_ms, struct store_copy *out, struct error *err);
/* Free a copy; accepts a zeroed one. */
void store_copy_finish(struct store_copy *copy);

struct store_restored {
    uint64_t cluster, copied_ms;
    uint64_t jobs_open; /* jobs that had not ended */
    char *aside;        /* new path of the store that was there, owned by the caller; NULL: none */
};
/* Make a store in `directory` from a file with a copy by store_copy(), such that no number of the
 * cluster is used twice. A store that is there is set aside. -EBUSY: it is in use; -EEXIST: it is
 * of another cluster; -EINVAL: the file is no such copy; otherwise as store_open(). On failure
 * everything is as it was. */
int store_restore(const char *directory, const char *file, uint64_t now_ms,
                  struct store_restored *out, struct error *err);

/* A plan as it was assigned. */
struct store_plan {
    char *json, *candidates;
    uint64_t *hashes; /* [rank]: of its program */
    size_t rank_count;
    double *compute_s; /* [rank], as in struct planning; NULL: stored by an older release */
};

/* The job's current record, including its ranks. */
void store_put_job(struct store *store, const struct job *job);
/* The plan of the job's epoch, in the place of those before it. */
void store_put_plan(struct store *store, const struct job *job, const char *id,
                    const struct store_plan *plan);
/* The data files that its ranks read; put once. */
void store_put_corpus(struct store *store, const struct job *job, const struct corpus *corpus);
/* A checkpoint to be listed. Of the job's listed checkpoints only the newest `keep` remain, and
 * those that another job goes on from, until it has ended. Damaged ones that are no further than
 * this one are dropped. */
struct store_checkpoint {
    uint64_t step;
    uint32_t epoch;
    const char *folder; /* its path */
    uint64_t bytes, unix_ms;
    bool damaged; /* no epoch starts from it any more */
};
void store_put_checkpoint(struct store *store, const struct job *job,
                          const struct store_checkpoint *checkpoint, size_t keep);
/* Mark a checkpoint as damaged: it remains stored but is no longer the newest one. */
void store_damage_checkpoint(struct store *store, const struct job *job, uint64_t step,
                             uint32_t epoch);
/* A rendezvous value that has to survive the process; and delete the job's values whose keys start
 * with the prefix. */
void store_put_value(struct store *store, const char *job, uint64_t epoch, const char *key,
                     const void *value, size_t size);
void store_delete_values(struct store *store, const char *job, const char *prefix);
/* What the job has measured and the store has not been told yet: steps, evaluations, the sample and
 * sums of instructions. The caller notes that it has been. */
void store_put_measured(struct store *store, const struct job *job,
                        const struct job_telemetry *measured);
void store_put_worker(struct store *store, const struct worker *worker);
void store_delete_worker(struct store *store, const char *name);
/* Revisions increase by one. Of more than STORE_EVENTS_MAX, the oldest are dropped: steps, which
 * are also in curves, and what is of no job; of each job its newest STORE_JOB_EVENTS_MAX stay. */
void store_put_event(struct store *store, uint64_t revision, const Gimbal__Event *event);
#define STORE_EVENTS_MAX 100000
#define STORE_JOB_EVENTS_MAX 2000

void store_put_token(struct store *store, const struct identity_token *token);
void store_put_credential(struct store *store, const struct identity_credential *credential);
/* Read all tokens and credentials into `identity`. */
int store_read_identity(struct store *store, struct identity *identity, struct error *err);

/* Read all workers and pass them to the callback one by one, lent; a negative errno from the
 * callback ends this and is returned. -EPROTO: a record cannot be understood; otherwise errors of
 * the database. */
typedef int (*store_worker_cb)(void *data, const struct worker *worker, struct error *err);
int store_read_workers(struct store *store, store_worker_cb callback, void *data,
                       struct error *err);
/* All jobs that have not ended, and those ended_max that have ended last, in order of number. */
typedef int (*store_job_cb)(void *data, const struct job *job, struct error *err);
int store_read_jobs(struct store *store, size_t ended_max, store_job_cb callback, void *data,
                    struct error *err);
/* Numbers of jobs that ended before before_ms, or before those jobs_max that ended last: the oldest
 * first, and at most `most`. */
int store_read_overdue(struct store *store, size_t jobs_max, uint64_t before_ms, uint64_t *numbers,
                       size_t most, size_t *count, struct error *err);
/* Remove all of a job that has ended, but that there was one of this number. */
void store_remove_job(struct store *store, uint64_t number);
/* What is left of a job that was removed. Returns 1, or 0 if none of this number was. */
struct store_removed {
    enum job_state state; /* in which it ended */
    uint64_t ended_ms;
};
int store_find_removed(struct store *store, uint64_t number, struct store_removed *out,
                       struct error *err);
/* The job that the user submitted with this key, owned by the caller; NULL if there is none. */
int store_find_key(struct store *store, const char *user, const char *key, struct job **out,
                   struct error *err);
/* The number of the next job: one more than any that was stored. */
int store_next_number(struct store *store, uint64_t *number, struct error *err);
/* The plan of the job's epoch. The caller finishes *out, which is all zero if none was stored. */
int store_read_plan(struct store *store, const struct job *job, struct store_plan *out,
                    struct error *err);
/* The caller owns it; NULL if none was stored. */
int store_read_corpus(struct store *store, const struct job *job, struct corpus **out,
                      struct error *err);
/* All listed and damaged checkpoints, newest first. The caller releases the array with
 * store_checkpoints_free(). */
int store_read_checkpoints(struct store *store, const struct job *job,
                           struct store_checkpoint **out, size_t *count, struct error *err);
void store_checkpoints_free(struct store_checkpoint *checkpoints, size_t count);
/* Fill in what was measured of the job, all of it or no more than its newest `steps_max` steps:
 * into a record that has nothing of it. */
int store_read_measured(struct store *store, const struct job *job, struct job_telemetry *into,
                        struct error *err);
int store_read_newest_steps(struct store *store, const struct job *job, size_t steps_max,
                            struct job_telemetry *into, struct error *err);
/* A negative errno from the callback ends the reading. */
typedef int (*store_value_cb)(void *data, const char *job, uint64_t epoch, const char *key,
                              const void *value, size_t size, struct error *err);
int store_read_values(struct store *store, store_value_cb callback, void *data, struct error *err);
void store_plan_finish(struct store_plan *plan);

struct store_query {
    const char *job, *node; /* "": any */
    uint64_t after;         /* only events after this revision */
    size_t count_max;
    const char *except; /* a kind of events to leave out; NULL: none */
    /* if there are more than count_max, return the newest instead of the oldest; always in order of
     * revision */
    bool newest;
};
/* A negative value from the callback ends the reading. */
typedef int (*store_event_cb)(void *data, uint64_t revision, const Gimbal__Event *event);
int store_read_events(struct store *store, const struct store_query *query, store_event_cb callback,
                      void *data, struct error *err);

#endif

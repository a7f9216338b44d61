/* checks.h - what must hold in a simulated cluster; whatever does not ends the run in words. */
#ifndef TESTS_SIMULATION_CHECKS_H
#define TESTS_SIMULATION_CHECKS_H

#include "coordinator/jobs/job.h"
#include "tests/simulation/world.h"

struct coordinator;
struct disk;
struct disk_event;
struct executor;
struct sim_node;

void checks_open(void);
void checks_close(void);

/* What a coordinator is asked, kept where its answer has to be durable. */
struct ask;
struct ask *check_ask(const void *frame, size_t size); /* yours; NULL where nothing is to check */
void ask_free(struct ask *ask);
void check_answer(struct actor *server, const struct ask *ask, const void *frame, size_t size);

/* Something has become durable, or begun; a turn of a coordinator or a node is over. */
void check_dirty(void);
/* It begins to handle what has come; and has handled it. */
void check_begin(struct coordinator *coordinator);
void check_turn(const struct coordinator *coordinator);
void check_restart(const struct coordinator *coordinator);
void check_impostor(const struct coordinator *impostor);
void check_node(struct sim_node *node);
/* A job is about to become durable as `new`, in place of `old` (NULL: there was none). */
void check_job_commit(const struct job *old, const struct job *new);
/* An event is about to become durable behind those that are. */
void check_event_commit(const struct disk *disk, const struct disk_event *event);
/* Nothing bad has happened for long: everything must have come to its end. */
bool check_settled(void);
void check_end(void);

/* executors.c. A job that is excused has had a misfortune: the ranks of its epoch may be
 * stopped; those of one that is condemned, in any epoch. */
void check_excuse(const char *job);
void check_condemn(const char *job);
void check_excuse_node(const struct sim_node *node);
/* The ranks of the job's epoch are given back; and whether they were, since that time of the
 * coordinator's clock. */
void check_epoch_end(const char *job, uint64_t epoch, uint64_t now_ms);
bool check_epoch_ended(const char *job, uint64_t epoch, uint64_t since_ms);
void check_executor_start(const struct executor *executor);
void check_executor_stop(const struct executor *executor);
void check_let_go(const struct executor *executor);
/* That nothing of the job is left to do was acknowledged. */
void check_finished(const char *job);
void check_go(const struct executor *executor);
void check_executors(void);
void running_close(void);

#endif

/* kill_points.h - functions of the coordinator before and after which it may be killed.
 *
 * The program killable_coordinator is gimbal-coordinator, linked so that calls of these functions
 * between its files come by a wrapper (ld --wrap). The point is named in the environment:
 * GIMBAL_KILL_POINT="after store_commit", GIMBAL_KILL_COUNT=3 for the third time. */
#ifndef TESTS_CLUSTER_KILL_POINTS_H
#define TESTS_CLUSTER_KILL_POINTS_H

#include "tests/cluster/points.h"

#define KILL_POINTS(POINT, POINT_VOID)                                                             \
    POINT(int, store_begin_term, (struct store * s, uint64_t * t, struct error * e), (s, t, e))    \
    POINT(int, store_commit, (struct store * s, struct error * e), (s, e))                         \
    POINT_VOID(store_put_job, (struct store * s, const struct job *j), (s, j))                     \
    POINT_VOID(store_put_plan,                                                                     \
               (struct store * s, const struct job *j, const char *i, const struct store_plan *p), \
               (s, j, i, p))                                                                       \
    POINT_VOID(store_put_worker, (struct store * s, const struct worker *w), (s, w))               \
    POINT_VOID(store_put_event, (struct store * s, uint64_t r, const Gimbal__Event *v), (s, r, v)) \
    POINT(int, store_read_jobs,                                                                    \
          (struct store * s, size_t n, store_job_cb c, void *d, struct error *e), (s, n, c, d, e)) \
    POINT(int, jobs_submit,                                                                        \
          (struct jobs * j, const struct job_submission *s, uint64_t n, const struct job **o,      \
           struct job_actions *a, struct error *e),                                                \
          (j, s, n, o, a, e))                                                                      \
    POINT(int, jobs_apply,                                                                         \
          (struct jobs * j, const struct job_event *v, uint64_t n, struct job_actions *a,          \
           struct error *e),                                                                       \
          (j, v, n, a, e))                                                                         \
    POINT(int, jobs_restore,                                                                       \
          (struct jobs * j, const struct job *s, struct job_actions *a, struct error *e),          \
          (j, s, a, e))                                                                            \
    POINT(int, membership_restore,                                                                 \
          (struct membership * m, const struct worker *w, uint64_t n, struct error *e),            \
          (m, w, n, e))                                                                            \
    POINT(int, membership_report,                                                                  \
          (struct membership * m, uint64_t i, const struct hardware_report *r, uint64_t n,         \
           struct membership_events *v, struct error *e),                                          \
          (m, i, r, n, v, e))                                                                      \
    POINT(int, membership_hold,                                                                    \
          (struct membership * m, const char *j, const struct device_ref *r, size_t n,             \
           struct error *e),                                                                       \
          (m, j, r, n, e))                                                                         \
    POINT_VOID(assignments_assign, (struct assignments * a, const struct assignments_epoch *p),    \
               (a, p))                                                                             \
    POINT_VOID(assignments_go, (struct assignments * a, const struct job *j), (a, j))              \
    POINT_VOID(assignments_cancel, (struct assignments * a, const struct job *j), (a, j))          \
    POINT(int, planning_run, (const struct planning_task *t, struct planning *p, struct error *e), \
          (t, p, e))                                                                               \
    POINT(bool, planning_queue_take, (struct planning_queue * q, struct planning_answer * a),      \
          (q, a))                                                                                  \
    POINT_VOID(rpc_call_reply, (struct rpc_call * c, const ProtobufCMessage *m), (c, m))           \
    POINT_VOID(rpc_server_wake, (struct rpc_server * s, const char *n), (s, n))

#endif

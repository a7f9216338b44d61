/* save_points.h - functions of an executor before and after which it may be killed while a
 * checkpoint is made.
 *
 * The program killable_executor is gimbal-executor, linked so that calls of these functions come
 * by a wrapper (ld --wrap). The file that GIMBAL_SAVE_POINT names holds the point, "after rename
 * 3" for the third time; it counts from the first copy of a checkpoint on. Whoever comes to it
 * deletes the file and is killed: so one rank is, once. */
#ifndef TESTS_CLUSTER_SAVE_POINTS_H
#define TESTS_CLUSTER_SAVE_POINTS_H

#include "tests/cluster/points.h"

#define SAVE_POINTS(POINT, POINT_VOID)                                                             \
    POINT(int, saver_take,                                                                         \
          (struct saver * s, uint64_t t, state_buffer_cb * b, void *c, struct error *e),           \
          (s, t, b, c, e))                                                                         \
    POINT_VOID(state_copy, (const struct state_list *s, state_buffer_cb *b, void *c, void *o),     \
               (s, b, c, o))                                                                       \
    POINT(int, shard_write,                                                                        \
          (const char *f, int r, struct shard_slice *s, size_t n, const void *d,                   \
           struct manifest_shard *o, struct error *e),                                             \
          (f, r, s, n, d, o, e))                                                                   \
    POINT(int, manifest_write, (const struct manifest *m, const char *f, struct error *e),         \
          (m, f, e))                                                                               \
    POINT(int, session_stage,                                                                      \
          (void *s, const struct saver_report *r, struct saver_listed *l, struct error *e),        \
          (s, r, l, e))                                                                            \
    POINT(                                                                                         \
        int, checkpoint_clean,                                                                     \
        (const char *r, uint64_t p, uint64_t s, const char *const *k, size_t n, struct error *e),  \
        (r, p, s, k, n, e))                                                                        \
    POINT(int, fsync, (int f), (f))                                                                \
    POINT(int, rename, (const char *o, const char *n), (o, n))                                     \
    POINT(int, unlinkat, (int d, const char *n, int f), (d, n, f))                                 \
    POINT(int, rmdir, (const char *p), (p))

#endif

/* measured.c - stores what jobs have measured.
 *
 * Telemetry says what has changed since it was last stored, so that a step is written once however
 * long the run is, and a curve that thins itself out is thinned out here likewise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/store/internal.h"
#include "coordinator/store/sql.h"

static void measured_put_steps(struct sql *sql, uint64_t job, const struct steps *steps)
{
    size_t count;
    const struct step_point *window = steps_window(steps, &count);
    uint64_t window_from = count > 0 ? window[0].step : 0;
    if (steps->gone_from < window_from)
        sql_put(sql, "DELETE FROM steps WHERE job = ? AND step >= ? AND step < ? AND step % ? != 0",
                "uuuu", job, steps->gone_from, window_from, steps->stride);
    if (steps->changed_from == UINT64_MAX)
        return;
    sql_put(sql, "DELETE FROM steps WHERE job = ? AND step >= ?", "uu", job, steps->changed_from);
    size_t first = steps->count;
    while (first > 0 && steps->points[first - 1].step >= steps->changed_from)
        first--;
    for (size_t i = first; i < steps->count; i++) {
        const struct step_point *point = &steps->points[i];
        sql_put(sql,
                "INSERT INTO steps (job, step, epoch, loss, gradient_norm, time_s, tokens, end_ms)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                "uuuddduu", job, point->step, (uint64_t)point->epoch, point->loss,
                point->gradient_norm, point->time_s, point->tokens, point->end_ms);
    }
}

static void measured_put_evaluations(struct sql *sql, uint64_t job,
                                     const struct evaluations *evaluations)
{
    uint64_t from = evaluations->unsaved_from;
    if (from > 0) {
        uint64_t oldest = evaluations->count > 0 ? evaluations->items[0].step : 0;
        sql_put(sql, "DELETE FROM evaluations WHERE job = ?1 AND (step >= ?2 OR step < ?3)", "uuu",
                job, from, oldest);
    }
    for (size_t i = 0; from > 0 && i < evaluations->count; i++)
        if (evaluations->items[i].step >= from)
            sql_put(sql, "INSERT INTO evaluations (job, step, loss, targets) VALUES (?, ?, ?, ?)",
                    "uudu", job, evaluations->items[i].step, evaluations->items[i].loss,
                    evaluations->items[i].targets);
    if (evaluations->text_unsaved)
        sql_put(sql, "INSERT OR REPLACE INTO samples (job, step, text) VALUES (?, ?, ?)", "uub",
                job, evaluations->text_step, (const void *)evaluations->text,
                evaluations->text_size);
}

static void measured_put_times(struct sql *sql, uint64_t job, uint32_t epoch,
                               const struct instructions *instructions)
{
    if (!instructions->unsaved)
        return;
    sql_put(sql, "DELETE FROM times WHERE job = ?", "u", job);
    for (size_t i = 0; i < instructions->count; i++) {
        const struct instruction_sums *kind = &instructions->kinds[i];
        sql_put(sql,
                "INSERT INTO times (job, block, class, epoch, count, predicted_s, measured_s,"
                " median_s, median_ratio) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                "uttuudddd", job, kind->block, kind->class, (uint64_t)epoch, kind->count,
                kind->predicted_s, kind->measured_s, instruction_time_median_s(kind),
                instruction_ratio_median(kind));
    }
}

void store_put_measured(struct store *store, const struct job *job,
                        const struct job_telemetry *measured)
{
    measured_put_steps(&store->sql, job->number, &measured->steps);
    measured_put_evaluations(&store->sql, job->number, &measured->evaluations);
    measured_put_times(&store->sql, job->number, measured->epoch, &measured->instructions);
}

static int points_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct step_point *)a)->step, y = ((const struct step_point *)b)->step;
    return (x > y) - (x < y);
}

int store_read_newest_steps(struct store *store, const struct job *job, size_t steps_max,
                            struct job_telemetry *into, struct error *err)
{
    struct sql *sql = &store->sql;
    struct step_point *points = NULL;
    size_t count = 0, capacity = 0;
    sqlite3_stmt *row =
        sql_bind(sql,
                 "SELECT step, epoch, loss, gradient_norm, time_s, tokens, end_ms FROM steps"
                 " WHERE job = ? ORDER BY step DESC LIMIT ?",
                 "ui", job->number, sql_limit(steps_max));
    while (sql_step(sql, row)) {
        points = grow(points, count, &capacity, sizeof *points);
        points[count++] = (struct step_point){.step = sql_number(row, 0),
                                              .epoch = (uint32_t)sql_number(row, 1),
                                              .loss = sql_real(row, 2),
                                              .gradient_norm = sql_real(row, 3),
                                              .time_s = sqlite3_column_double(row, 4),
                                              .tokens = sql_number(row, 5),
                                              .end_ms = sql_number(row, 6)};
    }
    if (count > 1)
        qsort(points, count, sizeof *points, points_compare);
    steps_restore(&into->steps, points, count);
    free(points);
    return sql_failed(sql, err);
}

static void measured_read_evaluations(struct sql *sql, uint64_t job,
                                      struct evaluations *evaluations)
{
    sqlite3_stmt *row = sql_bind(
        sql, "SELECT step, targets, loss FROM evaluations WHERE job = ? ORDER BY step", "u", job);
    while (sql_step(sql, row))
        evaluations_add(evaluations, &(struct evaluation){sql_number(row, 0), sql_number(row, 1),
                                                          sql_real(row, 2)});
    row = sql_bind(sql, "SELECT step, text FROM samples WHERE job = ?", "u", job);
    while (sql_step(sql, row))
        evaluations_set_text(evaluations, sql_number(row, 0), sqlite3_column_blob(row, 1),
                             (size_t)sqlite3_column_bytes(row, 1));
    evaluations->unsaved_from = 0;
    evaluations->text_unsaved = false;
}

static void measured_read_times(struct sql *sql, uint64_t job, struct job_telemetry *into)
{
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT block, class, epoch, count, predicted_s, measured_s,"
                                 " median_s, median_ratio FROM times WHERE job = ?"
                                 " ORDER BY block, class",
                                 "u", job);
    while (sql_step(sql, row)) {
        struct instruction_sums kind = {.count = sql_number(row, 3),
                                        .predicted_s = sqlite3_column_double(row, 4),
                                        .measured_s = sqlite3_column_double(row, 5)};
        snprintf(kind.block, sizeof kind.block, "%s", sql_text(row, 0));
        snprintf(kind.class, sizeof kind.class, "%s", sql_text(row, 1));
        into->epoch = (uint32_t)sql_number(row, 2);
        instructions_restore(&into->instructions, &kind, sqlite3_column_double(row, 6),
                             sqlite3_column_double(row, 7));
    }
}

int store_read_measured(struct store *store, const struct job *job, struct job_telemetry *into,
                        struct error *err)
{
    int rc = store_read_newest_steps(store, job, SIZE_MAX, into, err);
    if (rc < 0)
        return rc;
    measured_read_evaluations(&store->sql, job->number, &into->evaluations);
    measured_read_times(&store->sql, job->number, into);
    return sql_failed(&store->sql, err);
}

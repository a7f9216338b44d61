/* curve.c - `gimbal curve JOB`: loss, held-out loss and speed of a run, step by step; and those of
 * several runs side by side.
 *
 * What was measured is put together by step: points of a curve, and evaluations, which may be of
 * steps that a long run keeps no point of. Tables show as many lines as people read, evenly spread,
 * programs get all. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define JOBS_MAX 16
#define LINES_STANDARD 40

struct curve_values {
    bool compare;
    int64_t points; /* -1: the standard */
};

static const struct flag curve_flags[] = {
    {"compare", 'c', FLAG_SWITCH, offsetof(struct curve_values, compare), NULL,
     "put the losses of several jobs side by side"},
    {"points", 'n', FLAG_NUMBER, offsetof(struct curve_values, points), "N",
     "only so many of the steps, evenly spread; 0: all (in a table 40, else 0)", .standard = -1,
     .greatest = 1000000},
    {.name = NULL},
};

/* A curve as it came. */
struct curve {
    const char *job;
    Gimbal__GetCurveReply *reply;
    size_t points, evaluations; /* as many as all lists have */
    size_t point, evaluation;   /* where reading is */
};

/* All that is known of one step of one job; NaN: not known. */
struct moment {
    uint64_t step, epoch, tokens, unix_ms;
    double loss, held_out, gradient_norm, seconds;
    bool told; /* there is a point */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* An enum exit_code. */
static int curve_get(struct client *client, const char *job, struct curve *curve, struct error *err)
{
    Gimbal__GetCurveRequest request = GIMBAL__GET_CURVE_REQUEST__INIT;
    ProtobufCMessage *reply;
    request.job = (char *)job;
    int code = client_call(client, COORDINATOR_GET_CURVE, &request.base, 0, &reply, err);
    if (code != EXIT_DONE)
        return code;
    Gimbal__GetCurveReply *got = (Gimbal__GetCurveReply *)reply;
    *curve = (struct curve){.job = job, .reply = got};
    size_t counts[] = {got->n_epoch,   got->n_loss,   got->n_gradient_norm,
                       got->n_seconds, got->n_tokens, got->n_unix_ms};
    curve->points = got->n_step;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        curve->points = least(curve->points, counts[i]);
    curve->evaluations = least(got->n_evaluation_step, got->n_evaluation_loss);
    return EXIT_DONE;
}

/* The next step that the curve has something of; UINT64_MAX: none is left. */
static uint64_t curve_next(const struct curve *curve)
{
    const Gimbal__GetCurveReply *reply = curve->reply;
    uint64_t point = curve->point < curve->points ? reply->step[curve->point] : UINT64_MAX;
    uint64_t evaluation = curve->evaluation < curve->evaluations
                              ? reply->evaluation_step[curve->evaluation]
                              : UINT64_MAX;
    return point < evaluation ? point : evaluation;
}

/* What it has of this step, which is its next one or before it. */
static struct moment curve_take(struct curve *curve, uint64_t step)
{
    const Gimbal__GetCurveReply *reply = curve->reply;
    struct moment moment = {.step = step,
                            .loss = (double)NAN,
                            .held_out = (double)NAN,
                            .gradient_norm = (double)NAN,
                            .seconds = (double)NAN};
    size_t i = curve->point;
    if (i < curve->points && reply->step[i] == step) {
        moment.told = true;
        moment.epoch = reply->epoch[i];
        moment.loss = reply->loss[i];
        moment.gradient_norm = reply->gradient_norm[i];
        moment.seconds = reply->seconds[i];
        moment.tokens = reply->tokens[i];
        moment.unix_ms = reply->unix_ms[i];
        curve->point++;
    }
    if (curve->evaluation < curve->evaluations && reply->evaluation_step[curve->evaluation] == step)
        moment.held_out = reply->evaluation_loss[curve->evaluation++];
    return moment;
}

static double moment_tokens_per_s(const struct moment *moment)
{
    return moment->seconds > 0 ? (double)moment->tokens / moment->seconds : (double)NAN;
}

/* ---- which steps are shown ---- */

/* What several curves have of each step that one of them has something of: moments[step][curve]. */
struct rows {
    struct moment *moments;
    size_t count, curves, capacity;
};

static void rows_read(struct rows *rows, struct curve *curves, size_t count)
{
    rows->curves = count;
    for (;;) {
        uint64_t next = UINT64_MAX;
        for (size_t i = 0; i < count; i++)
            next = curve_next(&curves[i]) < next ? curve_next(&curves[i]) : next;
        if (next == UINT64_MAX)
            return;
        if (rows->count == rows->capacity) {
            rows->capacity = rows->capacity ? 2 * rows->capacity : 256;
            rows->moments = xrealloc(rows->moments, rows->capacity * count * sizeof *rows->moments);
        }
        for (size_t i = 0; i < count; i++)
            rows->moments[rows->count * count + i] = curve_take(&curves[i], next);
        rows->count++;
    }
}

static const struct moment *rows_at(const struct rows *rows, size_t row)
{
    return &rows->moments[row * rows->curves];
}

/* Keep `most` rows, evenly spread, with the first and the last; 0: all. */
static void rows_spread(struct rows *rows, size_t most)
{
    if (most == 0 || rows->count <= most)
        return;
    for (size_t i = 0; i < most; i++) {
        size_t from = most == 1 ? rows->count - 1 : i * (rows->count - 1) / (most - 1);
        for (size_t k = 0; k < rows->curves; k++)
            rows->moments[i * rows->curves + k] = rows->moments[from * rows->curves + k];
    }
    rows->count = most;
}

/* Whether a curve has any evaluation. */
static bool rows_evaluate(const struct rows *rows, size_t curve)
{
    for (size_t i = 0; i < rows->count; i++)
        if (!isnan(rows_at(rows, i)[curve].held_out))
            return true;
    return false;
}

/* ---- printing ---- */

static void cell_add(struct table *table, const char *format, double value)
{
    if (isnan(value))
        table_add(table, "%s", "");
    else
        table_add(table, format, value);
}

static void moment_add_row(struct table *table, const struct moment *moment)
{
    char text[32] = "";
    double rate = moment_tokens_per_s(moment);
    table_add(table, "%" PRIu64, moment->step);
    cell_add(table, "%.4f", moment->loss);
    cell_add(table, "%.4f", moment->held_out);
    table_add(table, "%s", isnan(rate) ? "" : units_print_count(text, sizeof text, rate));
    table_add(table, "%s",
              moment->told ? units_print_seconds(text, sizeof text, moment->seconds) : "");
    cell_add(table, "%.4g", moment->gradient_norm);
    if (moment->told)
        table_add(table, "%" PRIu64, moment->epoch);
    else
        table_add(table, "%s", "");
    table_add(table, "%s", output_print_time(text, sizeof text, moment->unix_ms));
}

static void print_table(const struct common *common, const struct rows *rows)
{
    static const struct column columns[] = {
        {"STEP", .right = true},
        {"LOSS", .right = true},
        {"HELD-OUT", .right = true},
        {"TOK/S", .right = true},
        {"STEP TIME", .right = true},
        {"GRADIENT", .right = true},
        {"EPOCH", .right = true, .wide = true},
        {"WHEN", .wide = true},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < rows->count; i++)
        moment_add_row(table, rows_at(rows, i));
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static json_t *moment_json(const struct moment *moment)
{
    return resource_object(
        "CurvePoint",
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:f}", "step", (json_int_t)moment->step,
                  "epoch", (json_int_t)moment->epoch, "loss", resource_number(moment->loss),
                  "held_out_loss", resource_number(moment->held_out), "gradient_norm",
                  resource_number(moment->gradient_norm), "tokens_per_s",
                  resource_number(moment_tokens_per_s(moment)), "step_time_s",
                  resource_number(moment->seconds), "unix_s", 1e-3 * (double)moment->unix_ms));
}

/* A number, or nothing where it is not known. */
static void csv_put(double value)
{
    char text[32];
    if (isnan(value))
        putchar(',');
    else
        printf(",%s", units_print_real(text, sizeof text, value));
}

static void print_csv(const struct rows *rows, bool headers)
{
    if (headers)
        puts("step,epoch,loss,held_out_loss,gradient_norm,tokens_per_s,step_time_s,unix_s");
    for (size_t i = 0; i < rows->count; i++) {
        const struct moment *moment = rows_at(rows, i);
        double known = moment->told ? 0 : (double)NAN;
        printf("%" PRIu64, moment->step);
        csv_put(known + (double)moment->epoch);
        csv_put(moment->loss);
        csv_put(moment->held_out);
        csv_put(moment->gradient_norm);
        csv_put(moment_tokens_per_s(moment));
        csv_put(moment->seconds);
        csv_put(known + 1e-3 * (double)moment->unix_ms);
        putchar('\n');
    }
}

static void print_curve(const struct common *common, const struct rows *rows)
{
    if (common->output == OUTPUT_CSV) {
        print_csv(rows, !common->no_headers);
        return;
    }
    if (common->output < OUTPUT_JSON) {
        print_table(common, rows);
        return;
    }
    json_t *items = json_array();
    for (size_t i = 0; i < rows->count; i++)
        json_array_append_new(items, moment_json(rows_at(rows, i)));
    output_print_list((enum output)common->output, "Curve", "points", items, stdout);
}

/* ---- side by side ---- */

/* A column for the losses of each job, and one for those on held-out data where it has any. */
struct comparison {
    const struct rows *rows;
    const struct curve *curves;
    struct column columns[1 + 2 * JOBS_MAX];
    struct {
        size_t curve;
        bool held_out;
    } of[1 + 2 * JOBS_MAX];
    size_t count;
};

static void comparison_add(struct comparison *to, size_t curve, bool held_out)
{
    to->columns[to->count] = (struct column){
        .name = xasprintf("%s%s", to->curves[curve].job, held_out ? " HELD-OUT" : ""),
        .right = true};
    to->of[to->count].curve = curve;
    to->of[to->count++].held_out = held_out;
}

static void comparison_begin(struct comparison *to)
{
    to->columns[to->count++] = (struct column){.name = xstrdup("STEP"), .right = true};
    for (size_t i = 0; i < to->rows->curves; i++) {
        comparison_add(to, i, false);
        if (rows_evaluate(to->rows, i))
            comparison_add(to, i, true);
    }
}

static double comparison_value(const struct comparison *of, size_t row, size_t column)
{
    const struct moment *moment = &rows_at(of->rows, row)[of->of[column].curve];
    return of->of[column].held_out ? moment->held_out : moment->loss;
}

static void comparison_print_table(const struct common *common, const struct comparison *of)
{
    struct table *table = table_create(of->columns, of->count);
    for (size_t i = 0; i < of->rows->count; i++) {
        table_add(table, "%" PRIu64, rows_at(of->rows, i)->step);
        for (size_t k = 1; k < of->count; k++)
            cell_add(table, "%.4f", comparison_value(of, i, k));
    }
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static void comparison_print_csv(const struct common *common, const struct comparison *of)
{
    if (!common->no_headers) {
        printf("step");
        for (size_t k = 1; k < of->count; k++)
            printf(",%s.%s", of->curves[of->of[k].curve].job,
                   of->of[k].held_out ? "held_out_loss" : "loss");
        putchar('\n');
    }
    for (size_t i = 0; i < of->rows->count; i++) {
        printf("%" PRIu64, rows_at(of->rows, i)->step);
        for (size_t k = 1; k < of->count; k++)
            csv_put(comparison_value(of, i, k));
        putchar('\n');
    }
}

static void comparison_print_json(const struct common *common, const struct comparison *of)
{
    json_t *items = json_array();
    for (size_t i = 0; i < of->rows->count; i++) {
        json_t *losses = json_object(), *held_out = json_object();
        for (size_t k = 1; k < of->count; k++)
            json_object_set_new(of->of[k].held_out ? held_out : losses,
                                of->curves[of->of[k].curve].job,
                                resource_number(comparison_value(of, i, k)));
        json_array_append_new(
            items, resource_object("CurveComparison",
                                   json_pack("{s:I, s:o, s:o}", "step",
                                             (json_int_t)rows_at(of->rows, i)->step, "loss", losses,
                                             "held_out_loss", held_out)));
    }
    output_print_list((enum output)common->output, "CurveComparisonList", "steps", items, stdout);
}

static void print_comparison(const struct common *common, const struct rows *rows,
                             const struct curve *curves)
{
    struct comparison comparison = {.rows = rows, .curves = curves};
    comparison_begin(&comparison);
    if (common->output == OUTPUT_CSV)
        comparison_print_csv(common, &comparison);
    else if (common->output < OUTPUT_JSON)
        comparison_print_table(common, &comparison);
    else
        comparison_print_json(common, &comparison);
    for (size_t i = 0; i < comparison.count; i++)
        free((char *)comparison.columns[i].name);
}

/* ---- the command ---- */

static int curve_show(const struct invocation *invocation, struct curve *curves, size_t count)
{
    const struct common *common = &invocation->common;
    const struct curve_values *values = invocation->values;
    bool table = common->output < OUTPUT_JSON;
    struct rows rows = {0};
    rows_read(&rows, curves, count);
    rows_spread(&rows, values->points >= 0 ? (size_t)values->points : table ? LINES_STANDARD : 0);
    if (rows.count == 0 && table) {
        if (!common->quiet)
            fprintf(stderr, "%s has not finished a step yet\n", curves[0].job);
    } else if (values->compare) {
        print_comparison(common, &rows, curves);
    } else {
        print_curve(common, &rows);
    }
    free(rows.moments);
    return EXIT_DONE;
}

static int curve_run(const struct invocation *invocation, struct error *err)
{
    const struct curve_values *values = invocation->values;
    struct client client = {0};
    struct curve curves[JOBS_MAX] = {0};
    size_t count = (size_t)invocation->argument_count;
    if (count > 1 && !values->compare)
        return error_set(err, EXIT_USAGE, "several jobs are put side by side: add --compare");
    int code = client_open(&invocation->common, &client, err);
    for (size_t i = 0; i < count && code == EXIT_DONE; i++)
        code = curve_get(&client, invocation->arguments[i], &curves[i], err);
    client_close(&client);
    if (code == EXIT_DONE)
        code = curve_show(invocation, curves, count);
    for (size_t i = 0; i < count; i++)
        if (curves[i].reply)
            message_free(&curves[i].reply->base);
    return code;
}

const struct command command_curve = {
    .name = "curve",
    .summary = "Print the losses and the speed of a job step by step, or those of several jobs "
               "side by side",
    .arguments = "JOB ...",
    .arguments_min = 1,
    .arguments_max = JOBS_MAX,
    .flags = curve_flags,
    .values_size = sizeof(struct curve_values),
    .takes = TAKES_OUTPUT | TAKES_CSV | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = curve_run,
};

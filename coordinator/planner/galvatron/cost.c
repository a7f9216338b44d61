/* cost.c - Galvatron's accounting, in its own units: milliseconds and MB of 2^20 bytes.
 *
 * A layer on t x d devices, with b = (samples of a micro-batch) / d on each. Forward: the profile's
 * line at b / t; backward: twice that, and the forward again with recomputation. Four collectives
 * of b s h over t, or six with recomputation. Gradients, P / t MB, are reduced over d during the
 * backward pass: while both run, each takes `overlap` times as long; if d is 2 or less beside t,
 * only half of the backward pass overlaps. Zero 3 gathers weights without overlap. A collective of
 * M MB on n devices moves 2 (n - 1) / n M, a gather half of that. Between stages, 2 b s h for every
 * stage are distributed over the layers of a type. 16 bits halve every message. With Ulysses
 * parameters are not divided by t, and are reduced over all devices of the stage.
 *
 * Memory: four times P / t, of which zero keeps 1 / d + 0.003 in parts that depend on when
 * gradients are reduced; activations of the samples that are in flight; embedding and head; the
 * context. Each layer's is rounded up to MB, and so is the rest of a stage.
 *
 * The pipeline: T_i is a stage's time without reduction, S_i that of its layers with it. A = sum T
 * + T_last (m - 1); B = max(w T_0, R) + T_0 max(0, m + 1 - p), with w = min(p, m) - 1 and R the sum
 * of T except T_0, each in a forward and a backward part of a third and two thirds. A step is
 * max(A, B)
 * + max(0, max(S_i - sum of T up to i)). */
#include "coordinator/planner/galvatron/cost.h"

#include "common/base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB (1024.0 * 1024.0)
#define BACKWARD 2.0 /* times forward */
#define COLLECTIVES 4
#define ZERO_MARGIN 0.003

/* A measurement that is looked up; the first that is missing is told. */
struct lookup {
    const struct galvatron_profile *profile;
    int rc;
    struct error *err;
};

static double look_up(struct lookup *lookup, const struct galvatron_table *table, int key,
                      const char *form)
{
    double value = 1;
    if (galvatron_find(table, key, &value))
        return value;
    if (lookup->rc == 0)
        lookup->rc = error_set(lookup->err, -EINVAL, "the profile lacks %s%d", form, key);
    return value;
}

/* Milliseconds per MB among the devices of a group. */
static double group_inverse(struct lookup *lookup, int size, bool consecutive)
{
    if (size == 1)
        return 0;
    const struct galvatron_table *table = &lookup->profile->allreduce_gb_s[consecutive];
    return 1 / look_up(lookup, table, size,
                       consecutive ? "neighbours' allreduce_size_N_consec_1 with N = "
                                   : "strided ranks' allreduce_size_N_consec_0 with N = ");
}

/* Of embedding and head: a group is taken as strided unless it is alone in the stage. */
static double vocabulary_inverse(struct lookup *lookup, int size, int other)
{
    return group_inverse(lookup, size, other == 1 || size == 1);
}

/* Milliseconds of one collective of so many bytes: as measured for exactly this size, or by the
 * line. */
static double collective_ms(struct lookup *lookup, bool all_to_all, int group, double bytes,
                            bool measured)
{
    const struct galvatron_profile *profile = lookup->profile;
    double mb = bytes / MB, value;
    int i = 0;
    while (i < profile->collective_count && (profile->collectives[i].all_to_all != all_to_all ||
                                             profile->collectives[i].group != group))
        i++;
    if (i == profile->collective_count) {
        static const struct galvatron_table none;
        return look_up(lookup, &none, group,
                       all_to_all ? "sp_time's all2all_size_N_*MB_time with N = "
                                  : "sp_time's allreduce_size_N_*MB_time with N = ");
    }
    const struct galvatron_collective *of = &profile->collectives[i];
    bool whole = mb == floor(mb) && mb < 1 << 30;
    if (measured && whole && galvatron_find(&of->ms, (int)mb, &value))
        return value;
    return galvatron_at(&of->line, mb);
}

/* Items dealt into at most `parts` equal runs, of which the last may be shorter. */
struct runs {
    int64_t total, size, count;
};

static struct runs cut(int64_t total, int64_t parts)
{
    int64_t size = (total + parts - 1) / parts;
    return (struct runs){total, size, size ? (total + size - 1) / size : 0};
}

static int stage_devices(const struct galvatron_problem *problem,
                         const struct galvatron_point *point)
{
    return galvatron_devices(&problem->spec) / point->pp;
}

static double word_share(const struct galvatron_problem *problem)
{
    return problem->profile.mixed ? 2 : 1;
}

int64_t galvatron_micro_batches(const struct galvatron_problem *problem,
                                const struct galvatron_point *point)
{
    int width = stage_devices(problem, point);
    int64_t want =
        (int64_t)ceil((double)(point->batch * point->min_tp / width) / (double)point->samples);
    want = want < 1 ? 1 : want;
    return want == 1 ? 1 : cut(point->batch / (width / point->min_tp), want).count;
}

/* ---- time ---- */

/* Backward and reduction, which slow each other while both run. */
static double overlapped(double message, double backward, double inverse, double slower)
{
    double reduction = message * inverse * slower, computation = backward * slower;
    if (reduction > computation)
        return computation + (message - computation / (inverse * slower)) * inverse;
    return reduction + (backward - reduction / slower);
}

static double tensor_ms(struct lookup *lookup, const struct galvatron_problem *problem,
                        const struct galvatron_strategy *strategy, double elements)
{
    double share = word_share(problem), again = strategy->recompute ? 1.5 : 1;
    int t = strategy->tp;
    if (problem->spec.measured_collectives)
        return COLLECTIVES * again *
               collective_ms(lookup, strategy->ulysses, t, elements * 4 / share, true);
    double message = 2.0 * (t - 1) / t * elements * COLLECTIVES * 4 / MB * again / share;
    return message * group_inverse(lookup, t, strategy->dp == 1 || strategy->consecutive);
}

int galvatron_layer_seconds(const struct galvatron_problem *problem, int type,
                            const struct galvatron_strategy *strategy,
                            const struct galvatron_point *point, struct galvatron_cost *out,
                            struct error *err)
{
    const struct galvatron_profile *profile = &problem->profile;
    const struct galvatron_type *shape = &problem->spec.types[type];
    struct lookup lookup = {profile, 0, err};
    int t = strategy->tp, d = strategy->dp;
    double share = word_share(problem);
    double micro_batch = (double)point->batch / (double)galvatron_micro_batches(problem, point);
    double b = micro_batch / d;
    double forward = galvatron_at(&profile->layers[type].forward_ms, b / t);
    double backward = forward * (BACKWARD + strategy->recompute);
    double shard = profile->layers[type].parameter_mb / (strategy->ulysses ? 1 : t);
    double ring = 2.0 * (d - 1) / d * shard / share;
    double inverse = strategy->ulysses
                         ? group_inverse(&lookup, t * d, true)
                         : group_inverse(&lookup, d, !(t > 1 && strategy->consecutive));
    double plain = forward, reduced = forward;
    if (d == 1) {
        plain += backward;
        reduced += backward;
    } else {
        double apart = t == 1 || t * d / 2 > t ? 0 : backward / 2;
        plain += apart + overlapped(0, backward - apart, inverse, profile->overlap);
        reduced += apart + overlapped(ring, backward - apart, inverse, profile->overlap);
    }
    double rest = 0;
    if (t > 1)
        rest +=
            tensor_ms(&lookup, problem, strategy, b * (double)shape->seq * (double)shape->hidden);
    if (strategy->zero == 3)
        rest += ring / 2 * inverse;
    if (point->pp > 1) {
        double message =
            point->pp * 2 * b * (double)shape->seq * (double)shape->hidden * 4 / MB / share;
        rest += message / look_up(&lookup, &profile->p2p_gb_s, point->pp, "pp_size_N with N = ") /
                shape->count;
    }
    *out = (struct galvatron_cost){
        .seconds = (plain + rest) * 1e-3 * problem->spec.cost_factor,
        .reduced_s = (reduced + rest) * 1e-3 * problem->spec.cost_factor,
    };
    return lookup.rc;
}

/* What a micro-batch's collectives over the vocabulary's tensor group take, of one type. */
static double vocabulary_ms(struct lookup *lookup, const struct galvatron_problem *problem,
                            const struct galvatron_point *point, int type)
{
    int vtp = point->vtp, width = stage_devices(problem, point);
    double share = word_share(problem);
    double elements = (double)point->samples * (double)problem->spec.types[type].seq;
    double hidden = (double)problem->spec.types[0].hidden;
    if (point->vsp || vtp == 1)
        return 0;
    if (problem->spec.measured_collectives)
        return collective_ms(lookup, false, vtp, elements * hidden * 4 / share, false);
    return (double)(vtp - 1) / vtp * elements * hidden / MB * 4 / share *
           vocabulary_inverse(lookup, vtp, width / vtp);
}

/* Seconds of embedding and head, or of one of them. */
static void ends_seconds(struct lookup *lookup, const struct galvatron_problem *problem,
                         const struct galvatron_point *point, int stage, struct galvatron_cost *out)
{
    const struct galvatron_profile *profile = &problem->profile;
    int width = stage_devices(problem, point), last = problem->spec.type_count - 1;
    int replicas = point->vsp ? width : width / point->vtp, column = point->vsp ? 1 : point->vtp;
    double inverse = point->vsp ? group_inverse(lookup, width, true)
                                : vocabulary_inverse(lookup, replicas, point->vtp);
    inverse *= (double)(replicas - 1) / replicas;
    double forward =
        galvatron_at(&profile->other_ms, (double)point->samples / (double)point->min_tp);
    double tensor = 0;
    /* One size stands for both ends: the first stage's, or the last one's if sequences are divided.
     */
    const struct galvatron_other *of = point->pp == 1 ? &profile->alone
                                       : point->vsp   ? &profile->last
                                                      : &profile->first;
    if (point->pp == 1) {
        for (int type = 0; type <= last; type++)
            tensor += vocabulary_ms(lookup, problem, point, type);
        tensor += vocabulary_ms(lookup, problem, point, last);
    } else {
        forward /= 2;
        tensor = vocabulary_ms(lookup, problem, point, stage == 0 ? 0 : last);
    }
    double size = look_up(lookup, &of->states_mb, column, "model_states of degree ") / 4;
    for (int reduces = 0; reduces < 2; reduces++) {
        double total = tensor;
        for (int direction = 0; direction < 2; direction++) {
            double comp = direction ? forward * BACKWARD : forward;
            double share = (point->embed_sdp ? 0.5 : 0) + (direction && reduces ? 0.5 : 0);
            double comm = size * inverse * share;
            total += comm + fmax(0, comp * profile->overlap - comm) / profile->overlap;
        }
        *(reduces ? &out->reduced_s : &out->seconds) = total * 1e-3;
    }
}

/* ---- memory ---- */

/* The share of states that zero keeps of a degree; `whole` is the part that it does not shard. */
static double keep(double whole, int degree)
{
    return (1 - whole) * (1.0 / degree + ZERO_MARGIN) + whole;
}

static double states_share(const struct galvatron_problem *problem, int zero, int degree,
                           int64_t chunks)
{
    double word = problem->profile.mixed ? 1.0 / 8 : 1.0 / 4;
    if (zero == 0)
        return 1;
    if (chunks == 1)
        return keep(zero == 3 ? 0 : word, degree);
    if (problem->spec.async_grad_reduce)
        return keep(zero == 3 ? word : 2 * word, degree);
    /* Gradients are added up in f32. */
    if (zero == 3)
        return (1.0 / degree + ZERO_MARGIN) * 5 / 4;
    return problem->profile.mixed ? keep(word, degree) * 5 / 4 : keep(word, degree);
}

/* Micro-batches as the memory of a strategy counts them. */
static int64_t chunks_of(const struct galvatron_point *point, int tp, int dp)
{
    double each = (double)(point->batch / dp / (tp / point->min_tp));
    int64_t wanted = (int64_t)ceil(each / (double)point->samples);
    int64_t most = point->batch / ((int64_t)tp * dp / point->min_tp);
    wanted = wanted < 1 ? 1 : wanted;
    most = most < 1 ? 1 : most;
    return wanted < most ? wanted : most;
}

int galvatron_layer_mb(const struct galvatron_problem *problem, int type,
                       const struct galvatron_strategy *strategy,
                       const struct galvatron_point *point, int stage, double *out,
                       struct error *err)
{
    const struct galvatron_layer *layer = &problem->profile.layers[type];
    struct lookup lookup = {&problem->profile, 0, err};
    int t = strategy->tp, d = strategy->dp;
    if (t % point->min_tp != 0)
        return error_set(err, -EINVAL, "tp %d is no multiple of min_tp %d", t, point->min_tp);
    int64_t chunks = chunks_of(point, t, d);
    double share = (double)point->batch / d;
    struct runs runs = cut((int64_t)(share / (t / point->min_tp)), chunks);
    if (runs.count != chunks)
        return error_set(err, -EINVAL, "%lld samples cannot be cut into %lld micro-batches",
                         (long long)runs.total, (long long)chunks);
    double alive = (double)runs.size;
    if (!problem->spec.gpipe || point->pp == 1) {
        int64_t kept = point->pp - stage < chunks ? point->pp - stage : chunks;
        kept = kept * runs.size < runs.total ? kept * runs.size : runs.total;
        alive = share * (double)kept / (double)runs.total;
    }
    double states = 4 * layer->parameter_mb / (strategy->ulysses ? 1 : t);
    if (d > 1)
        states *= states_share(problem, strategy->zero, strategy->ulysses ? t * d : d, chunks);
    double activations;
    if (strategy->recompute)
        activations = layer->checkpoint_mb * alive / (problem->profile.sequence_parallel ? t : 1);
    else
        activations =
            look_up(&lookup, &layer->activation_mb, t, "tp_activation_per_bsz_dict of degree ") *
            alive;
    *out = states + activations;
    if (strategy->recompute && layer->checkpoint_mb == 0)
        return error_set(err, -EINVAL,
                         "the profile lacks checkpoint in tp_activation_per_bsz_dict");
    return lookup.rc;
}

static double end_mb(struct lookup *lookup, const struct galvatron_problem *problem,
                     const struct galvatron_point *point, const struct galvatron_other *of,
                     int copies)
{
    int width = stage_devices(problem, point), column = point->vsp ? 1 : point->vtp;
    int64_t chunks = chunks_of(point, point->min_tp, width / point->min_tp);
    int zero = point->embed_sdp ? 3 : problem->spec.zero2 ? 2 : 0;
    double samples = (double)(point->batch * point->vtp) / (double)width / (double)chunks;
    return look_up(lookup, &of->states_mb, column, "model_states of degree ") *
               states_share(problem, zero, point->vsp ? width : width / point->vtp, chunks) +
           look_up(lookup, &of->activation_mb, point->vtp, "activation of degree ") * samples *
               copies;
}

/* The buffer that sequence parallelism gathers into. */
static int64_t shared_mb(const struct galvatron_problem *problem,
                         const struct galvatron_point *point)
{
    const struct galvatron_spec *spec = &problem->spec;
    int64_t seq = 0, hidden = 0;
    if (!problem->profile.sequence_parallel || !spec->global_buffer)
        return 0;
    for (int i = 0; i < spec->type_count; i++) {
        seq = spec->types[i].seq > seq ? spec->types[i].seq : seq;
        hidden = spec->types[i].hidden > hidden ? spec->types[i].hidden : hidden;
    }
    hidden = spec->hidden_max ? spec->hidden_max : hidden;
    return (int64_t)((double)point->samples / point->min_tp * point->max_tp * (double)hidden *
                     (double)seq * 4 / MB / 2);
}

int galvatron_ends_mb(const struct galvatron_problem *problem, const struct galvatron_point *point,
                      int stage, double *out, struct error *err)
{
    const struct galvatron_profile *profile = &problem->profile;
    struct lookup lookup = {profile, 0, err};
    double mb = problem->spec.context_mb;
    if (point->pp == 1)
        mb += end_mb(&lookup, problem, point, &profile->alone, 1);
    else if (stage == 0)
        mb += end_mb(&lookup, problem, point, &profile->first, problem->spec.gpipe ? 1 : point->pp);
    else if (stage == point->pp - 1)
        mb += end_mb(&lookup, problem, point, &profile->last, 1);
    *out = mb;
    return lookup.rc;
}

int galvatron_ends(const struct galvatron_problem *problem, const struct galvatron_point *point,
                   int stage, struct galvatron_cost *out, struct error *err)
{
    struct lookup lookup = {&problem->profile, 0, err};
    double mb;
    *out = (struct galvatron_cost){0};
    if (stage == 0 || stage == point->pp - 1)
        ends_seconds(&lookup, problem, point, stage, out);
    int rc = lookup.rc == 0 ? galvatron_ends_mb(problem, point, stage, &mb, err) : lookup.rc;
    if (rc == 0)
        out->mb = (int64_t)ceil(mb) + shared_mb(problem, point);
    return rc;
}

/* ---- pipelines ---- */

double galvatron_formula(const struct galvatron_cost *stages, int count, int64_t micro_batches)
{
    double sum = 0, late = 0, m = (double)micro_batches, first = stages[0].seconds;
    double filling = (double)(count < micro_batches ? count : micro_batches) - 1;
    for (int i = 0; i < count; i++) {
        sum += stages[i].seconds;
        late = fmax(late, stages[i].layers_s - sum);
    }
    double rest = sum - first;
    double a = sum + stages[count - 1].seconds * (m - 1);
    double b = fmax(filling * first / 3, rest / 3) + fmax(2 * filling * first / 3, 2 * rest / 3) +
               first * fmax(0, m + 1 - count);
    return fmax(a, b) + late;
}

/* A stage in simulation: its next forward and backward, and when it is done with its last. */
struct line {
    int64_t forwards, backwards;
    double now_s;
};

/* Runs what stage i can run now; whether it ran anything. done[direction][stage * m + k] is when
 * that was done, -1 before. */
static bool neutral_advance(const struct galvatron_cost *stages, int count, int64_t m, int i,
                            struct line *line, double *done[2])
{
    int64_t warm = count - 1 - i < m ? count - 1 - i : m;
    bool ran = false;
    for (;;) {
        bool forward = line->forwards < m && line->forwards - line->backwards <= warm;
        int64_t k = forward ? line->forwards : line->backwards;
        int before = forward ? i - 1 : i + 1;
        if (k == m)
            return ran;
        double ready = before >= 0 && before < count ? done[!forward][(int64_t)before * m + k] : 0;
        if (ready < 0)
            return ran;
        double third = stages[i].seconds / 3;
        line->now_s = fmax(line->now_s, ready) + (forward ? third : stages[i].seconds - third);
        done[!forward][(int64_t)i * m + k] = line->now_s;
        *(forward ? &line->forwards : &line->backwards) += 1;
        ran = true;
    }
}

double galvatron_neutral(const struct galvatron_cost *stages, int count, int64_t micro_batches)
{
    size_t events = (size_t)count * (size_t)micro_batches;
    double step_s = 0,
           *done[2] = {xcalloc(events, sizeof(double)), xcalloc(events, sizeof(double))};
    struct line *lines = xcalloc((size_t)count, sizeof *lines);
    for (size_t i = 0; i < events; i++)
        done[0][i] = done[1][i] = -1;
    /* Down and up the pipeline, as long as anything runs. */
    for (bool ran = true; ran;) {
        ran = false;
        for (int i = 0; i < count; i++)
            ran = neutral_advance(stages, count, micro_batches, i, &lines[i], done) || ran;
        for (int i = count - 2; i >= 0; i--)
            ran = neutral_advance(stages, count, micro_batches, i, &lines[i], done) || ran;
    }
    for (int i = 0; i < count; i++)
        step_s = fmax(step_s, lines[i].now_s + fmax(0, stages[i].reduced_s - stages[i].seconds));
    free(lines);
    free(done[0]);
    free(done[1]);
    return step_s;
}

/* ---- plans ---- */

static int check_plan(const struct galvatron_problem *problem, const struct galvatron_plan *plan,
                      struct error *err)
{
    const struct galvatron_point *point = &plan->point;
    int devices = galvatron_devices(&problem->spec), layers = galvatron_layers(&problem->spec);
    int divided = 0;
    if (point->pp < 1 || point->pp > GALVATRON_STAGES_MAX || devices % point->pp != 0)
        return error_set(err, -EINVAL, "pp_deg %d does not divide %d devices into equal stages",
                         point->pp, devices);
    for (int i = 0; i < point->pp; i++)
        divided += plan->division[i];
    if (plan->layers != layers || divided != layers)
        return error_set(err, -EINVAL,
                         "the model has %d layers, and the plan %d strategies and a pp_division of "
                         "%d",
                         layers, plan->layers, divided);
    for (int l = 0; l < layers; l++) {
        const struct galvatron_strategy *s = &plan->strategies[l];
        if ((int64_t)s->tp * s->dp * point->pp != devices)
            return error_set(err, -EINVAL, "layer %d: %d x %d x %d does not fill %d devices", l,
                             point->pp, s->tp, s->dp, devices);
    }
    int width = devices / point->pp;
    if (point->min_tp < 1 || width % point->min_tp || point->vtp < 1 || width % point->vtp)
        return error_set(err, -EINVAL, "min_tp %d and vtp %d have to divide a stage's %d devices",
                         point->min_tp, point->vtp, width);
    if (point->batch / (width / point->min_tp) < 1 || point->samples < 1)
        return error_set(err, -EINVAL, "%lld samples are fewer than the %d replicas",
                         (long long)point->batch, width / point->min_tp);
    return 0;
}

/* What keeps that project's search from finding this plan, which is judged all the same. */
static void note_outside(const struct galvatron_problem *problem, const struct galvatron_plan *plan,
                         struct galvatron_verdict *out)
{
    const struct galvatron_point *point = &plan->point;
    int width = stage_devices(problem, point), replicas = width / point->min_tp, count = 0;
    int64_t share = point->batch / replicas;
    int even = plan->layers / point->pp;
    bool outside = false, uneven = false;
    for (int l = 0; l < plan->layers; l++)
        outside = outside || plan->strategies[l].tp < point->min_tp ||
                  plan->strategies[l].tp > point->max_tp;
    for (int i = 0; i < point->pp - 1; i++)
        uneven = uneven || plan->division[i] != even;
    if (point->batch % replicas != 0)
        out->notes[count++] = "the batch is no multiple of the replicas at min_tp";
    if ((share + point->samples - 1) / point->samples != point->chunks)
        out->notes[count++] = "the batch does not cut into exactly so many micro-batches";
    if (outside)
        out->notes[count++] = "a tp lies outside of min_tp to max_tp";
    if (point->vtp < point->min_tp || point->vtp > point->max_tp)
        out->notes[count++] = "vtp lies outside of min_tp to max_tp";
    if (uneven && problem->spec.type_count == 1)
        out->notes[count++] = point->pp > 2
                                  ? "uneven stages: the formula charges only the first and the last"
                                  : "uneven stages";
}

int galvatron_judge(const struct galvatron_problem *problem, const struct galvatron_plan *plan,
                    struct galvatron_verdict *out, struct error *err)
{
    const struct galvatron_point *point = &plan->point;
    struct error reason;
    int rc = check_plan(problem, plan, err);
    *out = (struct galvatron_verdict){
        .stages = point->pp,
        .budget_mb = galvatron_budget_mb(&problem->spec),
        .reserve_mb = galvatron_reserve_mb(&problem->spec),
        .fits = true,
    };
    int layer = 0;
    for (int i = 0; i < point->pp && rc == 0; i++) {
        struct galvatron_cost *stage = &out->stage[i];
        rc = galvatron_ends(problem, point, i, stage, &reason);
        for (int end = layer + plan->division[i]; layer < end && rc == 0; layer++) {
            struct galvatron_cost cost;
            double mb = 0;
            int type = galvatron_type_of(&problem->spec, layer);
            const struct galvatron_strategy *strategy = &plan->strategies[layer];
            rc = galvatron_layer_seconds(problem, type, strategy, point, &cost, &reason);
            if (rc == 0)
                rc = galvatron_layer_mb(problem, type, strategy, point, problem->spec.gpipe ? 0 : i,
                                        &mb, &reason);
            stage->seconds += cost.seconds;
            stage->reduced_s += cost.reduced_s;
            stage->layers_s += cost.reduced_s;
            stage->mb += (int64_t)ceil(mb);
        }
        if (rc < 0)
            return error_set(err, rc, "stage %d: %s", i, reason.text);
        out->fits = out->fits && stage->mb <= out->budget_mb - out->reserve_mb;
    }
    if (rc < 0)
        return rc;
    out->micro_batches = galvatron_micro_batches(problem, point);
    out->formula_s = galvatron_formula(out->stage, point->pp, out->micro_batches);
    out->neutral_s = galvatron_neutral(out->stage, point->pp, out->micro_batches);
    note_outside(problem, plan, out);
    return 0;
}

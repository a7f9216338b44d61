/* plan.c - their notation and files, and the way between their plans and ours. */
#include "coordinator/planner/galvatron/plan.h"

#include "common/base/memory.h"
#include "coordinator/planner/galvatron/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void galvatron_plan_finish(struct galvatron_plan *plan)
{
    free(plan->strategies);
    plan->strategies = NULL;
}

/* ---- notation ---- */

char *galvatron_strategy_print(char out[GALVATRON_STRATEGY_SIZE],
                               const struct galvatron_strategy *strategy, int pp)
{
    bool both = strategy->tp > 1 && strategy->dp > 1;
    snprintf(out, GALVATRON_STRATEGY_SIZE, "%d-%d%s-%d%s%s%s%s", pp, strategy->tp,
             both && strategy->consecutive ? "*" : "", strategy->dp,
             strategy->zero == 3 && strategy->dp > 1 ? "f" : "",
             both && !strategy->consecutive ? "*" : "", strategy->recompute ? "-c" : "",
             strategy->ulysses ? "-sp" : "");
    return out;
}

/* The number at *at, which is moved behind it; 0: there is none of 1 to the most devices. */
static int parse_degree(const char **at)
{
    char *end;
    long number = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : 0;
    if (number < 1 || number > GALVATRON_DEVICES_MAX)
        return 0;
    *at = end;
    return (int)number;
}

static bool parse_mark(const char **at, const char *mark)
{
    size_t size = strlen(mark);
    if (strncmp(*at, mark, size) != 0)
        return false;
    *at += size;
    return true;
}

bool galvatron_strategy_parse(const char *text, int zero, int *pp, struct galvatron_strategy *out)
{
    bool strided = false, sharded = false;
    *pp = parse_degree(&text);
    if (!*pp || !parse_mark(&text, "-"))
        return false;
    *out = (struct galvatron_strategy){.tp = parse_degree(&text)};
    bool consecutive = parse_mark(&text, "*");
    if (!out->tp || !parse_mark(&text, "-"))
        return false;
    out->dp = parse_degree(&text);
    for (int i = 0; i < 2; i++) {
        sharded = parse_mark(&text, "f") || sharded;
        strided = parse_mark(&text, "*") || strided;
    }
    out->consecutive = consecutive || !strided;
    out->recompute = parse_mark(&text, "-c");
    out->ulysses = parse_mark(&text, "-sp");
    out->zero = sharded ? 3 : zero;
    return out->dp && !*text;
}

char *galvatron_plan_print(char *out, size_t size, const struct galvatron_plan *plan)
{
    size_t used = 0;
    char text[2][GALVATRON_STRATEGY_SIZE];
    for (int l = 0, run = 0; l < plan->layers && used < size; l++) {
        galvatron_strategy_print(text[0], &plan->strategies[l], plan->point.pp);
        run++;
        if (l + 1 < plan->layers &&
            strcmp(text[0], galvatron_strategy_print(text[1], &plan->strategies[l + 1],
                                                     plan->point.pp)) == 0)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s%s x %d", l >= run ? ", " : "",
                                 text[0], run);
        run = 0;
    }
    for (int i = 0; i < plan->point.pp && plan->point.pp > 1 && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, i ? "+%d" : " in %d", plan->division[i]);
    if (used < size)
        snprintf(out + used, size - used, " m%lld vtp%d", (long long)plan->point.chunks,
                 plan->point.vtp);
    return out;
}

/* ---- files ---- */

static json_t *plan_in(json_t *root)
{
    json_t *inner = json_object_get(root, "plan");
    return json_is_object(inner) ? inner : root;
}

bool galvatron_plan_is(const char *path)
{
    json_t *root;
    struct error ignored;
    if (files_read(path, &root, &ignored) < 0)
        return false;
    bool is = json_object_get(plan_in(root), "pp_deg") != NULL;
    json_decref(root);
    return is;
}

/* The whole numbers of a list, or of a text "1,2,3". *count of them at most; it becomes how many
 * there are. */
static int take_numbers(const char *path, const char *key, const json_t *value, int64_t least,
                        int64_t *out, size_t *count, struct error *err)
{
    size_t most = *count;
    const char *text = json_string_value(value);
    *count = json_array_size(value);
    int rc = 0;
    for (size_t i = 0; i < *count && i < most && rc == 0; i++)
        rc = files_whole(path, key, json_array_get(value, i), least, &out[i], err);
    for (char *end; text && rc == 0; text = *end ? end + 1 : NULL) {
        int64_t number = strtoll(text, &end, 10);
        if (end == text || (*end && *end != ',') || number < least ||
            number > GALVATRON_DEVICES_MAX)
            return error_set(err, -EINVAL, "'%s': %s is '%s': write whole numbers from %lld on",
                             path, key, json_string_value(value), (long long)least);
        if (*count < most)
            out[*count] = number;
        *count += 1;
    }
    if (rc == 0 && (*count == 0 || *count > most))
        rc = error_set(err, -EINVAL, "'%s': %s is %s: write a list of 1 to %zu whole numbers", path,
                       key, value ? *count ? "too long" : "no list" : "missing", most);
    return rc;
}

/* Not given or null: 0, for which a default holds. */
static int take_optional(const char *path, const json_t *plan, const char *key, int64_t *out,
                         struct error *err)
{
    const json_t *value = json_object_get(plan, key);
    *out = 0;
    return !value || json_is_null(value) ? 0 : files_whole(path, key, value, 0, out, err);
}

static int take_written(const char *path, const json_t *list, int zero, struct galvatron_plan *out,
                        struct error *err)
{
    size_t count = json_array_size(list);
    if (count < 1 || count > GALVATRON_LAYERS_MAX)
        return error_set(err, -EINVAL,
                         "'%s': strategies has %zu entries: write one for each layer, like "
                         "\"2-2*-4f-c\"",
                         path, count);
    out->layers = (int)count;
    out->strategies = xcalloc(count, sizeof *out->strategies);
    for (size_t l = 0; l < count; l++) {
        const char *text = json_string_value(json_array_get(list, l));
        int pp;
        if (!text || !galvatron_strategy_parse(text, zero, &pp, &out->strategies[l]))
            return error_set(err, -EINVAL,
                             "'%s': strategies[%zu] is '%s': write pp-tp-dp, like \"2-2*-4f-c\"",
                             path, l, text ? text : "no text");
        if (pp != out->point.pp)
            return error_set(err, -EINVAL, "'%s': strategies[%zu] is '%s', and pp_deg is %d", path,
                             l, text, out->point.pp);
    }
    return 0;
}

/* The form of that project's own search: a list per property. */
static int take_encoded(const char *path, const json_t *plan, const struct galvatron_spec *spec,
                        int zero, struct galvatron_plan *out, struct error *err)
{
    static const char *const keys[] = {"tp_sizes_enc", "tp_consecutive_flags", "dp_types_enc",
                                       "checkpoint", "use_sp"};
    enum { TP, CONSECUTIVE, ZERO3, RECOMPUTE, ULYSSES, KEYS };
    int width = galvatron_devices(spec) / out->point.pp, rc = 0;
    int64_t *values = xcalloc(KEYS * GALVATRON_LAYERS_MAX, sizeof *values);
    size_t layers = GALVATRON_LAYERS_MAX;
    for (int k = 0; k < KEYS && rc == 0; k++) {
        size_t count = k == TP ? layers : GALVATRON_LAYERS_MAX;
        const json_t *value = json_object_get(plan, keys[k]);
        if (k > TP && !value)
            continue;
        rc = take_numbers(path, keys[k], value, k == TP, values + k * GALVATRON_LAYERS_MAX, &count,
                          err);
        if (k == TP)
            layers = count;
        else if (rc == 0 && count != layers)
            rc = error_set(err, -EINVAL, "'%s': %s has %zu entries, and %s %zu", path, keys[k],
                           count, keys[TP], layers);
    }
    if (rc == 0) {
        out->layers = (int)layers;
        out->strategies = xcalloc(layers, sizeof *out->strategies);
    }
    for (size_t l = 0; l < layers && rc == 0; l++) {
        const int64_t *of = values + l;
        if (width % of[TP] != 0)
            rc = error_set(err, -EINVAL,
                           "'%s': tp_sizes_enc has %lld, which does not divide the "
                           "%d devices of a stage",
                           path, (long long)of[TP], width);
        out->strategies[l] = (struct galvatron_strategy){
            .tp = (int)of[TP],
            .dp = (int)(width / of[TP]),
            .consecutive =
                !json_object_get(plan, keys[CONSECUTIVE]) || of[CONSECUTIVE * GALVATRON_LAYERS_MAX],
            .zero = of[ZERO3 * GALVATRON_LAYERS_MAX] ? 3 : zero,
            .recompute = of[RECOMPUTE * GALVATRON_LAYERS_MAX] != 0,
            .ulysses = of[TP] > 1 && of[ULYSSES * GALVATRON_LAYERS_MAX] != 0,
        };
    }
    free(values);
    return rc;
}

/* What a plan does not say follows from its strategies. */
static int complete(const char *path, const json_t *plan, const struct galvatron_spec *spec,
                    struct galvatron_plan *out, struct error *err)
{
    static const char *const keys[] = {"vtp", "min_tp", "max_tp", "mbsz", "vsp", "embed_sdp"};
    int64_t values[6];
    struct galvatron_point *point = &out->point;
    int smallest = GALVATRON_DEVICES_MAX, width = galvatron_devices(spec) / point->pp;
    for (int i = 0; i < 6; i++) {
        int rc = take_optional(path, plan, keys[i], &values[i], err);
        if (rc == 0 && values[i] > GALVATRON_DEVICES_MAX && i != 3)
            rc = error_set(err, -EINVAL, "'%s': %s is %lld, and %d is the most", path, keys[i],
                           (long long)values[i], GALVATRON_DEVICES_MAX);
        if (rc < 0)
            return rc;
    }
    for (int l = 0; l < out->layers; l++)
        smallest = out->strategies[l].tp < smallest ? out->strategies[l].tp : smallest;
    point->vtp = values[0] ? (int)values[0] : smallest;
    point->min_tp = values[1] ? (int)values[1] : point->vtp < smallest ? point->vtp : smallest;
    point->max_tp = values[2] ? (int)values[2] : spec->max_tp;
    point->vsp = values[4] != 0;
    point->embed_sdp = values[5] != 0;
    if (point->min_tp > width)
        return error_set(err, -EINVAL, "'%s': min_tp is %d, and a stage has %d devices", path,
                         point->min_tp, width);
    int64_t share = point->batch / (width / point->min_tp);
    point->samples = values[3] ? values[3] : (share + point->chunks - 1) / point->chunks;
    return 0;
}

int galvatron_plan_read(const char *path, const struct galvatron_spec *spec,
                        struct galvatron_plan *out, struct error *err)
{
    json_t *root;
    int64_t pp, division[GALVATRON_STAGES_MAX];
    size_t stages = GALVATRON_STAGES_MAX;
    *out = (struct galvatron_plan){.layers = 0};
    int rc = files_read(path, &root, err);
    if (rc < 0)
        return rc;
    const json_t *plan = plan_in(root);
    int zero = spec->zero2 ? 2 : 0, devices = galvatron_devices(spec);
    rc = files_whole(path, "pp_deg", json_object_get(plan, "pp_deg"), 1, &pp, err);
    if (rc == 0 && (pp > GALVATRON_STAGES_MAX || devices % pp != 0))
        rc = error_set(err, -EINVAL, "'%s': pp_deg is %lld, which does not divide %d devices", path,
                       (long long)pp, devices);
    if (rc == 0)
        rc = take_numbers(path, "pp_division", json_object_get(plan, "pp_division"), 1, division,
                          &stages, err);
    if (rc == 0 && (int64_t)stages != pp)
        rc = error_set(err, -EINVAL, "'%s': pp_division has %zu stages, and pp_deg is %lld", path,
                       stages, (long long)pp);
    for (size_t i = 0; i < stages && rc == 0; i++)
        out->division[i] =
            division[i] > GALVATRON_LAYERS_MAX ? GALVATRON_LAYERS_MAX : (int)division[i];
    if (rc == 0) {
        out->point.pp = (int)pp;
        rc = files_whole(path, "global_bsz", json_object_get(plan, "global_bsz"), 1,
                         &out->point.batch, err);
    }
    if (rc == 0)
        rc = files_whole(path, "chunks", json_object_get(plan, "chunks"), 1, &out->point.chunks,
                         err);
    const json_t *written = json_object_get(plan, "strategies");
    if (rc == 0)
        rc = written ? take_written(path, written, zero, out, err)
                     : take_encoded(path, plan, spec, zero, out, err);
    if (rc == 0)
        rc = complete(path, plan, spec, out, err);
    json_decref(root);
    if (rc < 0)
        galvatron_plan_finish(out);
    return rc;
}

json_t *galvatron_plan_encode(const struct galvatron_plan *plan)
{
    const struct galvatron_point *point = &plan->point;
    json_t *division = json_array(), *strategies = json_array();
    char text[GALVATRON_STRATEGY_SIZE];
    for (int i = 0; i < point->pp; i++)
        json_array_append_new(division, json_integer(plan->division[i]));
    for (int l = 0; l < plan->layers; l++)
        json_array_append_new(strategies, json_string(galvatron_strategy_print(
                                              text, &plan->strategies[l], point->pp)));
    return json_pack("{s:i, s:o, s:o, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:I}", "pp_deg", point->pp,
                     "pp_division", division, "strategies", strategies, "global_bsz",
                     (json_int_t)point->batch, "chunks", (json_int_t)point->chunks, "vtp",
                     point->vtp, "vsp", point->vsp, "embed_sdp", point->embed_sdp, "min_tp",
                     point->min_tp, "max_tp", point->max_tp, "mbsz", (json_int_t)point->samples);
}

/* ---- ours and theirs ---- */

/* The part of a stage that comes first in its mesh: the tensor group if its ranks are adjacent. */
static int leading(const struct galvatron_strategy *strategy)
{
    return strategy->consecutive || strategy->dp == 1 ? strategy->tp : strategy->dp;
}

/* The axes of a stage, so that every layer's groups are products of some of them. */
static int set_mesh(const struct galvatron_plan *plan, int first, int count,
                    const struct galvatron_strategy *end, struct mesh *mesh, struct error *err)
{
    int width = end->tp * end->dp, at = 1;
    while (at < width) {
        int next = width;
        for (int l = -1; l < count; l++) {
            int cut = leading(l < 0 ? end : &plan->strategies[first + l]);
            next = cut > at && cut < next ? cut : next;
        }
        if (next % at != 0 || mesh->axes == AXES_MAX)
            return error_set(err, -ENOTSUP, "no axes of ours have groups of both %d and %d devices",
                             at, next);
        mesh->size[mesh->axes++] = next / at;
        at = next;
    }
    return 0;
}

static void set_block(struct plan_block *block, const struct mesh *mesh, bool split_sequences,
                      const struct galvatron_strategy *strategy)
{
    const char *tensor = strategy->ulysses ? "ulysses" : split_sequences ? "tensor_seq" : "tensor";
    bool tensor_first = strategy->consecutive || strategy->dp == 1;
    int lead = leading(strategy), at = 1;
    for (int axis = 0; axis < mesh->axes; axis++) {
        bool first = at < lead;
        block->roles[axis] = role_find(first == tensor_first ? tensor : "batch");
        at *= mesh->size[axis];
    }
    block->zero = strategy->dp > 1 ? strategy->zero : 0;
    block->recompute = strategy->recompute ? RECOMPUTE_FULL : RECOMPUTE_NONE;
}

struct plan *galvatron_plan_ours(const struct galvatron_plan *plan,
                                 const struct galvatron_spec *spec, bool split_sequences,
                                 struct error *err)
{
    const struct galvatron_point *point = &plan->point;
    int width = galvatron_devices(spec) / point->pp, next = 0, rc = 0;
    struct galvatron_strategy end = {.tp = point->vtp,
                                     .dp = width / point->vtp,
                                     .consecutive = true,
                                     .zero = point->embed_sdp ? 3
                                             : spec->zero2    ? 2
                                                              : 0};
    if (point->vsp)
        error_set(err, -ENOTSUP, "no program of ours divides the vocabulary's ends by sequences");
    else if (point->batch % point->chunks != 0)
        error_set(err, -ENOTSUP, "our programs cut a batch of %lld into equal micro-batches",
                  (long long)point->batch);
    if (point->vsp || point->batch % point->chunks != 0 || plan->layers + 2 > PLAN_BLOCKS_MAX ||
        point->chunks > PLAN_MICRO_BATCHES_MAX)
        return NULL;
    struct plan *ours = plan_create(point->pp, plan->layers + 2);
    for (int i = 0; i < point->pp && rc == 0; i++) {
        struct plan_stage *stage = &ours->stages[i];
        stage->block_first = next;
        stage->block_count = plan->division[i] + (i == 0) + (i == point->pp - 1);
        int first = next > 0 ? next - 1 : 0;
        rc = set_mesh(plan, first, plan->division[i], &end, &stage->mesh, err);
        for (int b = next; b < next + stage->block_count && rc == 0; b++) {
            bool is_end = b == 0 || b == plan->layers + 1;
            ours->blocks[b].stage = i;
            set_block(&ours->blocks[b], &stage->mesh, split_sequences,
                      is_end ? &end : &plan->strategies[b - 1]);
        }
        next += stage->block_count;
    }
    ours->micro_batches = (int)point->chunks;
    ours->micro_batch_samples = point->batch / point->chunks;
    ours->schedule = schedule_find(spec->gpipe ? "gpipe" : "1f1b");
    if (rc == 0 && ours->schedule)
        return ours;
    plan_destroy(ours);
    return NULL;
}

static int read_block(const struct plan *plan, int block, struct galvatron_strategy *out,
                      struct error *err)
{
    const struct plan_block *of = &plan->blocks[block];
    const struct mesh *mesh = &plan->stages[of->stage].mesh;
    int turns = 0, last = -1;
    *out =
        (struct galvatron_strategy){1, 1, true, false, of->recompute == RECOMPUTE_FULL, of->zero};
    for (int axis = 0; axis < mesh->axes; axis++) {
        const char *role = of->roles[axis]->name;
        bool batch = strcmp(role, "batch") == 0, ulysses = strcmp(role, "ulysses") == 0;
        bool tensor = strcmp(role, "tensor") == 0 || strcmp(role, "tensor_seq") == 0;
        if ((!batch && !ulysses && !tensor) || (ulysses && out->tp > 1 && !out->ulysses) ||
            (tensor && out->ulysses))
            return error_set(err, -ENOTSUP, "Galvatron's formula does not know the role %s%s", role,
                             batch || ulysses || tensor ? " beside others" : "");
        if (!batch && out->dp > 1 && out->tp == 1)
            out->consecutive = false; /* axes are ordered fastest first */
        out->ulysses = out->ulysses || ulysses;
        *(batch ? &out->dp : &out->tp) *= mesh->size[axis];
        turns += last >= 0 && last != batch;
        last = batch;
    }
    if (turns > 1)
        return error_set(err, -ENOTSUP,
                         "Galvatron's formula knows tensor groups that are adjacent or strided, "
                         "and no others");
    if (out->zero == 1)
        return error_set(err, -ENOTSUP, "Galvatron's formula does not know zero 1");
    if (of->recompute == RECOMPUTE_SELECTIVE)
        return error_set(err, -ENOTSUP,
                         "Galvatron's formula does not know recomputation of parts of a block");
    return 0;
}

/* Embedding and head, which have to be alike, and micro-batches. */
static int read_point(const struct plan *plan, const struct galvatron_spec *spec,
                      struct galvatron_plan *out, struct error *err)
{
    struct galvatron_point *point = &out->point;
    struct galvatron_strategy ends[2];
    int last = plan->block_count - 1, width = mesh_count(&plan->stages[0].mesh);
    for (int i = 0; i < 2; i++) {
        int block = i ? last : 0, rc = read_block(plan, block, &ends[i], err);
        if (rc < 0)
            return error_prefix(err, rc, "stage %d", plan->blocks[block].stage);
    }
    if (ends[0].tp != ends[1].tp || (ends[0].zero == 3) != (ends[1].zero == 3) || ends[0].ulysses ||
        ends[1].ulysses)
        return error_set(err, -ENOTSUP,
                         "Galvatron's formula divides embedding and head alike, over tensor and "
                         "batch");
    point->vtp = point->min_tp = ends[0].tp;
    point->embed_sdp = ends[0].zero == 3;
    point->max_tp = spec->max_tp;
    for (int l = 0; l < out->layers; l++) {
        int tp = out->strategies[l].tp;
        point->min_tp = tp < point->min_tp ? tp : point->min_tp;
        point->max_tp = tp > point->max_tp ? tp : point->max_tp;
    }
    int64_t share = point->batch / (width / point->min_tp);
    point->samples = (share + point->chunks - 1) / point->chunks;
    if (point->samples == 0)
        return error_set(err, -ENOTSUP, "Galvatron gives every replica a sample");
    return 0;
}

int galvatron_plan_theirs(const struct plan *plan, const struct galvatron_spec *spec,
                          struct galvatron_plan *out, struct error *err)
{
    int width = mesh_count(&plan->stages[0].mesh), rc = 0;
    *out = (struct galvatron_plan){.layers = plan->block_count - 2,
                                   .point = {.pp = plan->stage_count,
                                             .batch = plan_global_batch(plan),
                                             .chunks = plan->micro_batches}};
    const char *schedule = spec->gpipe ? "gpipe" : "1f1b";
    if (plan->stage_count > 1 && strcmp(plan->schedule->name, schedule) != 0)
        return error_set(err, -ENOTSUP, "Galvatron's formula is that of the schedule %s, not of %s",
                         schedule, plan->schedule->name);
    if (plan->stage_count > GALVATRON_STAGES_MAX || out->layers > GALVATRON_LAYERS_MAX)
        return error_set(err, -ENOTSUP, "the plan has too many stages or layers");
    out->strategies = xcalloc((size_t)out->layers + 1, sizeof *out->strategies);
    for (int i = 0; i < plan->stage_count && rc == 0; i++) {
        const struct plan_stage *stage = &plan->stages[i];
        out->division[i] = stage->block_count - (i == 0) - (i == plan->stage_count - 1);
        if (mesh_count(&stage->mesh) != width || stage->weights)
            rc = error_set(err, -ENOTSUP,
                           "stage %d: Galvatron's stages have equal numbers of "
                           "devices, and these equal shares",
                           i);
        for (int b = stage->block_first; b < stage->block_first + stage->block_count && rc == 0;
             b++)
            if (b > 0 && b < plan->block_count - 1)
                rc = read_block(plan, b, &out->strategies[b - 1], err);
        if (rc < 0)
            error_prefix(err, rc, "stage %d", i);
    }
    if (rc == 0 && out->layers < 1)
        rc = error_set(err, -ENOTSUP, "the plan has no layers");
    if (rc == 0)
        rc = read_point(plan, spec, out, err);
    if (rc < 0)
        galvatron_plan_finish(out);
    return rc;
}

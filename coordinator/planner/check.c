/* check.c - see check.h. Each pin is compared with the number that it has to suit. */
#include "coordinator/planner/check.h"

#include "common/config/paths.h"
#include "common/models/model.h"
#include "coordinator/planner/searches/searches.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int check_path(const char *key, const char *path, struct error *err)
{
    return path ? path_resolve(key, path, PATH_NODES, NULL, err) : 0;
}

int planner_graph(const struct job_config *job, struct graph **out, struct error *err)
{
    int rc = check_path("checkpoint.dir", job->checkpoint.dir, err);
    if (rc == 0)
        rc = check_path("model.weights", job->model.weights, err);
    if (rc == 0)
        rc = check_path("log.tensorboard", job->log.tensorboard, err);
    if (rc == 0)
        rc = check_path("log.jsonl", job->log.jsonl, err);
    if (rc < 0)
        return rc;
    return model_build(&job->model, job->train.dtype, out, err);
}

int planner_places(const struct job_config *job, struct error *err)
{
    const struct {
        const char *key;
        const struct texts *paths;
    } data[] = {{"data.text", &job->data.text},
                {"data.tokens", &job->data.tokens},
                {"eval.data", &job->eval.data}};
    int rc = 0;
    for (size_t kind = 0; kind < sizeof data / sizeof *data; kind++)
        for (size_t i = 0; i < data[kind].paths->count && rc == 0; i++)
            rc = check_path(data[kind].key, data[kind].paths->items[i], err);
    if (rc == 0 && job_tokenizer(job) == JOB_FILE)
        rc = check_path("data.tokenizer", job->data.tokenizer, err);
    return rc;
}

int planner_runs(const struct job_config *job, const struct graph *graph, struct error *err)
{
    int rc = model_runs(&job->model, graph, err);
    if (rc == 0 && job->data.images.count > 0)
        rc = error_set(err, -ENOSYS, "data.images can be planned with, not read yet");
    return rc;
}

static int refuse_search(const struct job_config *job, struct error *err)
{
    char known[256] = "";
    int used = 0;
    for (int i = 0; searches[i]; i++)
        used += snprintf(known + used, sizeof known - (size_t)used, i ? ", %s" : "%s",
                         searches[i]->name);
    return error_set(err, -EINVAL, "plan.search '%s' is unknown; known: %s", job->plan.search,
                     known);
}

int planner_names(const struct job_config *job, struct error *err)
{
    char known[128];
    const struct job_plan *plan = &job->plan;
    if (!search_find(plan->search))
        return refuse_search(job, err);
    const char *schedule = plan->schedule;
    if (schedule && !schedule_find(schedule))
        return error_set(err, -EINVAL, "plan.schedule '%s' is unknown; known: %s", schedule,
                         schedule_list(known, sizeof known));
    for (size_t i = 0; i < plan->forbid.roles.count; i++)
        if (!role_find(plan->forbid.roles.items[i]))
            return error_set(err, -EINVAL, "plan.forbid.roles '%s' is unknown; known: %s",
                             plan->forbid.roles.items[i], role_list(known, sizeof known));
    return 0;
}

int planner_check(const struct job_config *job, struct error *err)
{
    struct graph *graph;
    int rc = planner_graph(job, &graph, err);
    if (rc < 0)
        return rc;
    graph_destroy(graph);
    return planner_names(job, err);
}

#define TEXT_SIZE 160
#define DIVISORS_SHOWN 8

/* "1, 2, 3, 6": the smallest divisors of a number that a plan could have. */
static const char *print_divisors(char *out, size_t size, int64_t number, int64_t most)
{
    int used = 0, found = 0;
    for (int64_t d = 1; d <= number && d <= most && found < DIVISORS_SHOWN; d++)
        if (number % d == 0)
            used += snprintf(out + used, size - (size_t)used, found++ ? ", %lld" : "%lld",
                             (long long)d);
    return out;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#define CUTS_MAX 16

/* A dim that tensor parallelism cuts: heads, ffn, vocab, ... */
struct cut {
    char dim;
    int64_t size;
};

static int add_cut(struct cut *cuts, int count, char dim, int64_t size)
{
    for (int i = 0; i < count; i++)
        if (cuts[i].dim == dim && cuts[i].size == size)
            return count;
    if (count < CUTS_MAX)
        cuts[count++] = (struct cut){dim, size};
    return count;
}

/* Returns how many there are. A role that also cuts the sequence (tensor_seq) cuts these, too. */
static int find_cuts(const struct graph *graph, struct cut *cuts)
{
    const struct role *const vector[] = {role_find("tensor")};
    int count = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        struct signature signature = signature_make(node, vector, 1);
        for (int i = 0; i < operation_operands(node->operation); i++)
            for (int d = 0; node->dims[i][d]; d++)
                if (signature.operand[i].count[d] > 0)
                    count = add_cut(cuts, count, node->dims[i][d],
                                    sizes_get(&node->sizes, node->dims[i][d]));
    }
    return count;
}

/* "heads 4 and ffn 128": those that cannot be divided; returns how many. */
static int print_undivided(char *out, size_t size, const struct cut *cuts, int count, int64_t tp)
{
    int used = 0, found = 0, left = 0;
    for (int i = 0; i < count; i++)
        left += !dim_divides(cuts[i].dim, cuts[i].size, tp);
    for (int i = 0; i < count && (size_t)used < size; i++) {
        if (dim_divides(cuts[i].dim, cuts[i].size, tp))
            continue;
        left--;
        const char *before = found++ == 0 ? "" : left == 0 ? " and " : ", ";
        used += snprintf(out + used, size - (size_t)used, "%s%s %lld", before,
                         sizes_word(cuts[i].dim), (long long)cuts[i].size);
    }
    return found;
}

static int check_tensor(const struct planner_request *request, struct error *err)
{
    struct cut cuts[CUTS_MAX];
    char undivided[TEXT_SIZE] = "", divisors[TEXT_SIZE] = "";
    int64_t tp = request->job->plan.pin.tp, common = 0;
    if (tp <= 1)
        return 0;
    int count = find_cuts(request->graph, cuts);
    for (int i = 0; i < count; i++)
        if (!dim_divides(cuts[i].dim, cuts[i].size, tp))
            common = common_divisor(common, cuts[i].size);
    if (print_undivided(undivided, sizeof undivided, cuts, count, tp) == 0)
        return 0;
    return error_set(err, -EINVAL, "plan.pin: tp %lld does not divide %s of the model; %s do",
                     (long long)tp, undivided,
                     print_divisors(divisors, sizeof divisors, common, PLAN_RANKS_MAX));
}

static int check_batch(const struct planner_request *request, struct error *err)
{
    const struct job_pin *pin = &request->job->plan.pin;
    int64_t batch = request->job->train.global_batch,
            m = pin->micro_batches ? pin->micro_batches : 1;
    char divisors[TEXT_SIZE] = "";
    if (batch % m != 0)
        return error_set(
            err, -EINVAL,
            "plan.pin: micro_batches %lld does not divide train.global_batch %lld; %s do",
            (long long)m, (long long)batch,
            print_divisors(divisors, sizeof divisors, batch, PLAN_MICRO_BATCHES_MAX));
    if (pin->dp <= batch / m)
        return 0;
    if (pin->dp > batch)
        return error_set(err, -EINVAL,
                         "plan.pin: dp %lld is more than train.global_batch, %lld sample%s: each "
                         "device needs at least one",
                         (long long)pin->dp, (long long)batch, batch == 1 ? "" : "s");
    return error_set(err, -EINVAL,
                     "plan.pin: dp %lld is more than the %lld sample%s of a micro-batch "
                     "(train.global_batch %lld in %lld): each device needs at least one",
                     (long long)pin->dp, (long long)(batch / m), batch / m == 1 ? "" : "s",
                     (long long)batch, (long long)m);
}

/* The blocks before the first layer and after the last are no stages by themselves. */
static int check_layers(const struct planner_request *request, struct error *err)
{
    int64_t pp = request->job->plan.pin.pp, layers = (int64_t)request->graph->block_count - 2;
    layers = layers > 1 ? layers : 1;
    if (pp <= layers)
        return 0;
    return error_set(err, -EINVAL,
                     "plan.pin: pp %lld is more than the model's %lld layer%s: each stage needs at "
                     "least one",
                     (long long)pp, (long long)layers, layers == 1 ? "" : "s");
}

/* The pins that determine the number of devices, as in "dp 2, tp 4". */
static const char *print_pins(char *out, size_t size, const struct job_pin *pin)
{
    const struct {
        const char *name;
        int64_t value;
    } pins[] = {{"dp", pin->dp}, {"tp", pin->tp}, {"pp", pin->pp}};
    int used = 0;
    for (size_t i = 0; i < sizeof pins / sizeof *pins; i++)
        if (pins[i].value > 0)
            used += snprintf(out + used, size - (size_t)used, "%s%s %lld", used ? ", " : "",
                             pins[i].name, (long long)pins[i].value);
    return out;
}

static int check_devices(const struct planner_request *request, struct error *err)
{
    const struct job_pin *pin = &request->job->plan.pin;
    int64_t wanted = (pin->dp ? pin->dp : 1) * (pin->tp ? pin->tp : 1) * (pin->pp ? pin->pp : 1);
    char text[TEXT_SIZE];
    int least, most;
    planner_limits(request, &least, &most);
    if (wanted <= most)
        return 0;
    print_pins(text, sizeof text, pin);
    if (most < request->device_count)
        return error_set(err, -EINVAL,
                         "plan.pin asks for %lld devices (%s), and the job may use %d of %d "
                         "(devices.max)",
                         (long long)wanted, text, most, request->device_count);
    return error_set(err, -EINVAL,
                     "plan.pin asks for %lld devices (%s), and there %s %d for the job",
                     (long long)wanted, text, most == 1 ? "is" : "are", most);
}

/* What no other devices could put right comes first. */
int pins_check(const struct planner_request *request, struct error *err)
{
    int rc = check_tensor(request, err);
    if (rc == 0)
        rc = check_batch(request, err);
    if (rc == 0)
        rc = check_layers(request, err);
    return rc == 0 ? check_devices(request, err) : rc;
}

/* train.c - `gimbal train --local N`: trains without a cluster; the ranks are threads of one
 * executor. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/local/training.h"
#include "coordinator/cli/machine.h"

#include "common/base/memory.h"
#include "common/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct train_values {
    const char *file, *plan, *search, *checkpoint, *device;
    int64_t local;
    bool measure, resume;
};

static const struct flag train_flags[] = {
    {"file", 'f', FLAG_TEXT, offsetof(struct train_values, file), "FILE",
     "the job file (-: standard input)"},
    {"local", 0, FLAG_NUMBER, offsetof(struct train_values, local), "N",
     "how many devices to divide this machine's cores into", .least = 1,
     .greatest = MACHINE_DEVICES_MAX},
    MACHINE_MEASURE_FLAG(struct train_values, measure),
    {"device", 0, FLAG_TEXT, offsetof(struct train_values, device), "DEVICE",
     "let N ranks share this device instead of the cores: cuda, or cuda:GPU-6f0c... of several"},
    {"plan", 0, FLAG_TEXT, offsetof(struct train_values, plan), "FILE",
     "use this plan, written by 'gimbal plan -o json'"},
    {"search", 0, FLAG_TEXT, offsetof(struct train_values, search), "NAME",
     "the search, instead of the job's plan.search"},
    {"checkpoint", 0, FLAG_TEXT, offsetof(struct train_values, checkpoint), "DIR",
     "where to save, instead of the job's checkpoint.dir"},
    {"resume", 0, FLAG_SWITCH, offsetof(struct train_values, resume), NULL,
     "continue from the newest checkpoint there"},
    {.name = NULL},
};

static json_t *measured_or_null(const struct training_result *result)
{
    return result->steps == 0 ? json_null()
                              : json_pack("{s:f, s:f}", "step_time_s", result->step_time_s,
                                          "tokens_per_s", result->tokens_per_s);
}

/* A training that ends well without running a step had done all of them before. */
static int64_t steps_done(const struct offline *offline, const struct training_result *result)
{
    return result->steps > 0 ? (int64_t)result->steps : offline->job->train.steps;
}

static void print_result_json(const struct common *common, const struct offline *offline,
                              const struct training_result *result)
{
    const struct plan *plan = offline->best;
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:o, s:o, s:o, s:{s:f, s:f, s:I}, s:s?}", "name", offline->job->name,
        "plan", plan->id, "steps", (json_int_t)steps_done(offline, result), "loss",
        resource_number(result->loss), "heldout_loss", resource_number(result->heldout_loss),
        "measured", measured_or_null(result), "predicted", "step_time_s",
        plan->predicted.step_time_s, "tokens_per_s", plan->predicted.tokens_per_s,
        "memory_bytes_max", (json_int_t)plan->predicted.memory_bytes_max, "sample", result->sample);
    output_print_object((enum output)common->output, resource_object("TrainResult", object),
                        stdout);
}

static void print_figures(const struct offline *offline, const struct training_result *result)
{
    char predicted[32], measured[32];
    printf("loss           %.4f after %llu steps\n", result->loss,
           (unsigned long long)result->steps);
    if (!isnan(result->heldout_loss))
        printf("held-out loss  %.4f\n", result->heldout_loss);
    printf("step time      %s predicted, %s measured\n",
           units_print_seconds(predicted, sizeof predicted, offline->best->predicted.step_time_s),
           units_print_seconds(measured, sizeof measured, result->step_time_s));
}

static void print_result(const struct offline *offline, const struct training_result *result)
{
    if (result->steps > 0)
        print_figures(offline, result);
    else
        printf("all %lld steps are already done\n", (long long)steps_done(offline, result));
    if (result->sample)
        printf("\n%s\n", result->sample);
}

/* The absolute path of the folder, as the executor wants it; NULL: none is named. */
static char *absolute(const char *folder)
{
    if (!folder || folder[0] == '/')
        return folder ? xstrdup(folder) : NULL;
    char *here = getcwd(NULL, 0);
    char *path = xasprintf("%s/%s", here ? here : "", folder);
    free(here);
    return path;
}

/* checkpoint: instead of the job's checkpoint.dir; NULL: as the job says. */
static int prepare_saving(const char *checkpoint, bool resume, const struct job_config *job,
                          struct error *err)
{
    const char *dir = checkpoint ? checkpoint : job->checkpoint.dir;
    int rc = dir ? machine_prepare_saving(dir, job->name, resume, err) : 0;
    if (rc < 0)
        error_prefix(err, rc, checkpoint ? "--checkpoint" : "checkpoint.dir");
    return exit_of_errno(rc);
}

static int train(const struct invocation *invocation, const char *checkpoint, bool resume,
                 struct offline *offline, struct error *err)
{
    const struct common *common = &invocation->common;
    struct progress progress;
    struct training_result result;
    struct training_options options = {.offline = offline,
                                       .progress = &progress,
                                       .checkpoint = checkpoint,
                                       .resume = resume,
                                       .verbose = common->verbose,
                                       .steps_as_json = common->output == OUTPUT_JSONL};
    progress_open(&progress, stderr, common->quiet);
    int code = training_run(&options, &result, err);
    bool tells = result.steps > 0 || code == EXIT_DONE;
    if (tells && common->output >= OUTPUT_JSON)
        print_result_json(common, offline, &result);
    else if (tells)
        print_result(offline, &result);
    training_result_finish(&result);
    return code;
}

static int prepare_and_train(const struct invocation *invocation, const struct train_values *values,
                             struct offline *offline, struct error *err)
{
    char *checkpoint = absolute(values->checkpoint);
    int code = prepare_saving(checkpoint, values->resume, offline->job, err);
    if (code == EXIT_DONE)
        code = train(invocation, checkpoint, values->resume, offline, err);
    free(checkpoint);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct train_values *values = invocation->values;
    if (values->local == 0)
        return error_set(err, EXIT_USAGE,
                         "needs --local N, the number of devices on this machine; 'gimbal submit' "
                         "trains on a cluster");
    const char *file = values->file;
    int code = jobfile_path(invocation, &file, err);
    if (code != EXIT_DONE)
        return code;
    struct offline_request request = {.job_path = file,
                                      .search = values->search,
                                      .plan_path = values->plan,
                                      .device_count = (int)values->local,
                                      .device = values->device,
                                      .measure = values->measure,
                                      .to_train = true,
                                      .to_resume = values->resume && !values->checkpoint,
                                      .quiet = invocation->common.quiet};
    struct offline offline;
    code = offline_run(&request, &offline, err);
    if (offline.result.count > 0 && !invocation->common.quiet)
        planner_print(&offline.result, invocation->common.verbose ? 0 : 5, stderr);
    if (code == EXIT_DONE && !invocation->common.dry_run)
        code = prepare_and_train(invocation, values, &offline, err);
    offline_finish(&offline);
    return code;
}

const struct command command_train = {
    .name = "train",
    .summary = "Train on this machine, without a cluster",
    .arguments = "JOB-FILE",
    .arguments_max = 1,
    .flags = train_flags,
    .values_size = sizeof(struct train_values),
    .takes = TAKES_OUTPUT | TAKES_DRY_RUN,
    .run = run,
};

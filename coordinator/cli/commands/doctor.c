/* doctor.c - `gimbal doctor`: checks whether this machine and its links are fit for jobs. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/doctor/report.h"
#include "coordinator/cli/exit.h"

#include "common/rpc/message.h"

#include <stdlib.h>

#define ARGUMENTS_MAX 64

struct doctor_values {
    const char *file;
    bool pairs;
};

static const struct flag doctor_flags[] = {
    {"file", 'f', FLAG_TEXT, offsetof(struct doctor_values, file), "FILE",
     "check the files and folders of this job, too"},
    {"pairs", 0, FLAG_SWITCH, offsetof(struct doctor_values, pairs), NULL,
     "check the links inside nodes, and from here to each node"},
    {.name = NULL},
};

static int run(const struct invocation *invocation, struct error *err)
{
    (void)err;
    const struct doctor_values *values = invocation->values;
    struct visit visit = {
        .invocation = invocation, .job_path = values->file, .pairs = values->pairs};
    struct findings findings = {0};
    doctor_run(visit_checks, &visit, &findings);
    report_print(&visit, &findings, stdout);
    int code = report_exit(&findings);
    findings_finish(&findings);
    if (visit.nodes)
        message_free((ProtobufCMessage *)visit.nodes);
    hardware_report_destroy(visit.report);
    json_decref(visit.links);
    free(visit.node);
    return code;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "Check whether this machine and its links are fit to train",
    .arguments = "[-- gimbal-worker OPTION ...]",
    .arguments_min = 0,
    .arguments_max = ARGUMENTS_MAX,
    .flags = doctor_flags,
    .values_size = sizeof(struct doctor_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};

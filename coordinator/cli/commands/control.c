/* control.c - orders of one call: `gimbal cancel`, `pause`, `replan` and `resume` for a job,
 * `drain` and `undrain` for a node. They print nothing: the exit status says whether it was done.
 */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"

#include "common/message/message.h"

struct control_values {
    const char *reason;
    bool save, release;
};

#define AT(member) offsetof(struct control_values, member)

static const struct flag cancel_flags[] = {
    {"reason", 0, FLAG_TEXT, AT(reason), "TEXT", "why, for the job's history"},
    {"save", 0, FLAG_SWITCH, AT(save), NULL, "finish the current step and save a checkpoint first"},
    {.name = NULL},
};

static const struct flag pause_flags[] = {
    {"reason", 0, FLAG_TEXT, AT(reason), "TEXT", "why, for the job's history"},
    {"release", 0, FLAG_SWITCH, AT(release), NULL,
     "save a checkpoint and release the devices; the job resumes from it"},
    {.name = NULL},
};

static const struct flag replan_flags[] = {
    {"reason", 0, FLAG_TEXT, AT(reason), "TEXT", "why, for the job's history"},
    {.name = NULL},
};

static const struct flag drain_flags[] = {
    {"reason", 0, FLAG_TEXT, AT(reason), "TEXT", "why, for 'gimbal nodes' and the history"},
    {.name = NULL},
};

static char *control_reason(const struct invocation *invocation)
{
    const struct control_values *values = invocation->values;
    return (char *)(values->reason ? values->reason : "");
}

static int control_send(const struct invocation *invocation, unsigned method,
                        const ProtobufCMessage *request, struct error *err)
{
    ProtobufCMessage *reply;
    int code = client_call_once(&invocation->common, method, request, &reply, err);
    if (code == EXIT_DONE)
        message_free(reply);
    return code;
}

static int cancel_run(const struct invocation *invocation, struct error *err)
{
    const struct control_values *values = invocation->values;
    Gimbal__CancelRequest request = GIMBAL__CANCEL_REQUEST__INIT;
    request.job = invocation->arguments[0];
    request.reason = control_reason(invocation);
    request.save = values->save;
    return control_send(invocation, COORDINATOR_CANCEL, &request.base, err);
}

static int pause_run(const struct invocation *invocation, struct error *err)
{
    const struct control_values *values = invocation->values;
    Gimbal__PauseRequest request = GIMBAL__PAUSE_REQUEST__INIT;
    request.job = invocation->arguments[0];
    request.reason = control_reason(invocation);
    request.release = values->release;
    return control_send(invocation, COORDINATOR_PAUSE, &request.base, err);
}

static int resume_run(const struct invocation *invocation, struct error *err)
{
    Gimbal__ResumeRequest request = GIMBAL__RESUME_REQUEST__INIT;
    request.job = invocation->arguments[0];
    return control_send(invocation, COORDINATOR_RESUME, &request.base, err);
}

static int replan_run(const struct invocation *invocation, struct error *err)
{
    Gimbal__ReplanRequest request = GIMBAL__REPLAN_REQUEST__INIT;
    request.job = invocation->arguments[0];
    request.reason = control_reason(invocation);
    return control_send(invocation, COORDINATOR_REPLAN, &request.base, err);
}

static int drain_run(const struct invocation *invocation, struct error *err)
{
    Gimbal__DrainRequest request = GIMBAL__DRAIN_REQUEST__INIT;
    request.node = invocation->arguments[0];
    request.reason = control_reason(invocation);
    return control_send(invocation, COORDINATOR_DRAIN, &request.base, err);
}

static int undrain_run(const struct invocation *invocation, struct error *err)
{
    Gimbal__DrainRequest request = GIMBAL__DRAIN_REQUEST__INIT;
    request.undo = true;
    request.node = invocation->arguments[0];
    return control_send(invocation, COORDINATOR_DRAIN, &request.base, err);
}

#define ORDER(word, of, its_flags, about)                                                          \
    const struct command command_##word = {.name = #word,                                          \
                                           .summary = (about),                                     \
                                           .arguments = (of),                                      \
                                           .arguments_min = 1,                                     \
                                           .arguments_max = 1,                                     \
                                           .flags = (its_flags),                                   \
                                           .values_size = sizeof(struct control_values),           \
                                           .takes = TAKES_ADDRESS | TAKES_TIMEOUT,                 \
                                           .run = word##_run}

ORDER(cancel, "JOB", cancel_flags, "End a job and release its devices");
ORDER(pause, "JOB", pause_flags,
      "Pause a job after a step, or keep it waiting, until 'gimbal resume'");
ORDER(resume, "JOB", NULL, "Resume a paused job");
ORDER(replan, "JOB", replan_flags,
      "Plan a running job again, and move it to the best devices free now");
ORDER(drain, "NODE", drain_flags,
      "Move jobs off a node, and give it no new ones until 'gimbal undrain'");
ORDER(undrain, "NODE", NULL, "Give jobs to a drained node again");

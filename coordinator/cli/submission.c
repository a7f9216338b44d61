/* submission.c - sends the Submit call and copies what it answered. */
#include "coordinator/cli/submission.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"

#include <jansson.h>
#include <stdlib.h>

/* The plan's own id, for those who read the request; "" if the text has none. */
static char *plan_id(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    const char *id = json_string_value(json_object_get(json, "id"));
    char *copy = xstrdup(id ? id : "");
    json_decref(json);
    return copy;
}

int submission_send(struct client *client, const char *name, const char *yaml, const char *plan,
                    bool dry_run, struct submission *submission, struct error *err)
{
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__Plan given = GIMBAL__PLAN__INIT;
    ProtobufCMessage *message;
    spec.name = (char *)name; /* the job's user is the caller */
    spec.yaml = (char *)yaml;
    request.spec = &spec;
    request.dry_run = dry_run;
    if (plan) {
        given.id = plan_id(plan);
        given.json = (char *)plan;
        spec.plan = &given;
    }
    int code = client_call(client, COORDINATOR_SUBMIT, &request.base, 0, &message, err);
    if (plan)
        free(given.id);
    if (code != EXIT_DONE)
        return client->status == COORDINATOR_NO_PLAN ? EXIT_NO_PLAN : code;
    const Gimbal__SubmitReply *reply = (const Gimbal__SubmitReply *)message;
    submission->job = xstrdup(reply->job);
    submission->waiting = xstrdup(reply->waiting_reason);
    message_free(message);
    return EXIT_DONE;
}

void submission_finish(struct submission *submission)
{
    free(submission->job);
    free(submission->waiting);
    *submission = (struct submission){0};
}

/* mishap.c - kills a worker, and reads the coordinator's event about the replan. */
#include "coordinator/cli/demo/mishap.h"

#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"

#include <string.h>
#include <time.h>

static uint64_t now_unix_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Find the node of the job's last rank; false if that is unknown or it has none. */
static bool find_victim(const struct mishap *mishap, char *node, size_t size)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *message;
    struct error ignored;
    request.job = (char *)mishap->job;
    if (client_call(mishap->client, COORDINATOR_GET_JOB, &request.base, 0, &message, &ignored) !=
        EXIT_DONE)
        return false;
    const Gimbal__JobStatus *status = ((const Gimbal__GetJobReply *)message)->status;
    bool found = status && status->n_devices > 1;
    if (found) {
        const char *device = status->devices[status->n_devices - 1];
        snprintf(node, size, "%.*s", (int)strcspn(device, "/"), device);
    }
    message_free(message);
    return found;
}

static void strike(struct mishap *mishap)
{
    char node[sizeof mishap->victim];
    if (!find_victim(mishap, node, sizeof node) || !cluster_kill(mishap->cluster, node))
        return;
    mishap->killed_ms = now_unix_ms();
    memcpy(mishap->victim, node, sizeof node);
}

static bool is_half_way(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    json_int_t step = json_integer_value(json_object_get(json, "step"));
    json_int_t steps = json_integer_value(json_object_get(json, "steps"));
    json_decref(json);
    return step * 2 >= steps && step < steps;
}

void mishap_watch(struct mishap *mishap, const Gimbal__Event *event)
{
    if (!mishap->victim[0]) {
        if (strcmp(event->kind, "step") == 0 && is_half_way(event->json))
            strike(mishap);
    } else if (strcmp(event->kind, "job-replanning") == 0 && !mishap->noticed_ms) {
        mishap->noticed_ms = event->unix_ms;
    } else if (strcmp(event->kind, "job-replanned") == 0 && !mishap->replan) {
        mishap->replan = json_loads(event->json, 0, NULL);
        mishap->went_on_ms = event->unix_ms;
    }
}

static double since_kill_ms(const struct mishap *mishap, uint64_t unix_ms)
{
    return unix_ms > mishap->killed_ms ? (double)(unix_ms - mishap->killed_ms) : 0;
}

static double of_replan_ms(const struct mishap *mishap, const char *phase)
{
    return 1e3 * json_real_value(json_object_get(mishap->replan, phase));
}

static const char *side(const struct mishap *mishap, const char *which)
{
    const json_t *of = json_object_get(mishap->replan, which);
    const char *division = json_string_value(json_object_get(of, "division"));
    return division ? division : "?";
}

void mishap_print(const struct mishap *mishap, FILE *out)
{
    if (!mishap->victim[0]) {
        fprintf(out, "mishap         none: training ended before a worker could be killed\n");
        return;
    }
    if (!mishap->replan) {
        fprintf(out, "mishap         %s was killed, and no step followed\n", mishap->victim);
        return;
    }
    fprintf(out,
            "mishap         %s was killed halfway: noticed after %.0f ms, the next step finished "
            "after %.0f ms, %lld steps lost\n"
            "               %s, then %s: quiesce %.0f ms, plan %.0f ms, start %.0f ms, of which "
            "move %.0f ms, first step %.0f ms\n",
            mishap->victim, since_kill_ms(mishap, mishap->noticed_ms),
            since_kill_ms(mishap, mishap->went_on_ms),
            (long long)json_integer_value(json_object_get(mishap->replan, "steps_lost")),
            side(mishap, "before"), side(mishap, "after"), of_replan_ms(mishap, "quiesce_s"),
            of_replan_ms(mishap, "plan_s"), of_replan_ms(mishap, "start_s"),
            of_replan_ms(mishap, "move_s"), of_replan_ms(mishap, "step_s"));
}

json_t *mishap_json(const struct mishap *mishap)
{
    if (!mishap->victim[0])
        return NULL;
    return json_pack("{s:s, s:f, s:f, s:O?}", "node", mishap->victim, "noticed_s",
                     1e-3 * since_kill_ms(mishap, mishap->noticed_ms), "next_step_s",
                     1e-3 * since_kill_ms(mishap, mishap->went_on_ms), "replan", mishap->replan);
}

void mishap_finish(struct mishap *mishap)
{
    json_decref(mishap->replan);
    mishap->replan = NULL;
}

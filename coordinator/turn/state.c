/* state.c - the clock, and events of jobs. */
#include "coordinator/turn/state.h"

#include <errno.h>

#include "common/base/log.h"

uint64_t state_now_ms(const struct state *state)
{
    return state->options.clock_cb();
}

uint64_t state_patience_ms(const struct state *state, const struct rpc_call *call)
{
    uint32_t deadline_ms = rpc_call_envelope(call)->deadline_ms;
    return state_now_ms(state) + deadline_ms - deadline_ms / 4;
}

int state_apply(struct state *state, const struct job_event *event, struct error *err)
{
    return jobs_apply(state->jobs, event, state_now_ms(state), &state->actions, err);
}

void state_apply_own(struct state *state, const struct job_event *event)
{
    struct error err;
    int rc = state_apply(state, event, &err);
    if (rc < 0 && rc != -ESTALE)
        log_line(LOG_ERROR, "%s", err.text);
}

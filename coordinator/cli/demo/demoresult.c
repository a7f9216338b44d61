/* demoresult.c - the demo's figures, for people and for programs. */
#include "coordinator/cli/demo/demoresult.h"

#include "common/base/units.h"

#include <math.h>
#include <stdio.h>

static json_t *to_json(const struct demoresult *result)
{
    const struct progress_state *state = result->state;
    const struct plan *plan = result->plan;
    json_t *predicted = json_pack("{s:f, s:I}", "step_time_s", plan->predicted.step_time_s,
                                  "memory_bytes_max", (json_int_t)plan->predicted.memory_bytes_max);
    json_t *measured =
        json_pack("{s:f, s:I, s:f}", "step_time_s", state->step_time_s, "resident_bytes_max",
                  (json_int_t)result->executor_bytes, "tokens_per_s", state->tokens_per_s);
    json_t *heldout = resource_number(state->heldout_loss);
    json_t *mishap = result->mishap ? mishap_json(result->mishap) : NULL;
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:s?, s:o?}", "plan", plan->id, "steps",
                     (json_int_t)state->step, "loss", resource_number(state->loss), "heldout_loss",
                     heldout, "predicted", predicted, "measured", measured, "sample",
                     result->sample, "mishap", mishap);
}

static void print_lines(const struct demoresult *result)
{
    const struct progress_state *state = result->state;
    const struct plan *plan = result->plan;
    char predicted[32], measured[32];
    if (result->sample)
        printf("\nwhat the model writes:\n\n%s\n\n", result->sample);
    printf("loss           %.3f after %llu steps", state->loss, (unsigned long long)state->step);
    if (!isnan(state->heldout_loss))
        printf(", %.3f on text it has not seen", state->heldout_loss);
    printf("\nstep time      %s predicted, %s measured\n",
           units_print_seconds(predicted, sizeof predicted, plan->predicted.step_time_s),
           units_print_seconds(measured, sizeof measured, state->step_time_s));
    printf("memory         %s predicted and reserved, %s resident with the program itself\n",
           units_print_bytes(predicted, sizeof predicted, (double)plan->predicted.memory_bytes_max),
           units_print_bytes(measured, sizeof measured, (double)result->executor_bytes));
    if (result->mishap)
        mishap_print(result->mishap, stdout);
    fflush(stdout);
}

void demoresult_print(const struct demoresult *result, enum output output)
{
    if (output >= OUTPUT_JSON)
        output_print_object(output, resource_object("DemoResult", to_json(result)), stdout);
    else
        print_lines(result);
}

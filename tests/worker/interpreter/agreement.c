/* agreement.c - see agreement.h. */
#include "tests/worker/interpreter/agreement.h"

#include <check.h>

#define LIMIT 1e-5

void agreement_check(const char *model, const struct graph *graph, const struct plan *plan,
                     const struct engine_options *options, const struct engine_result *one,
                     const char *name, struct engine_result *out)
{
    struct error err = {""};
    char text[128];
    const char *worst = "";
    plan_print(text, sizeof text, plan);
    int rc = engine_run(graph, plan, options, out, &err);
    ck_assert_msg(rc == 0, "%s under %s (%s): %s", model, name, text, err.text);
    double loss = engine_loss_difference(out, one, options->steps);
    double gradient = engine_gradient_difference(out, one, graph, &worst);
    ck_assert_msg(loss <= LIMIT, "%s under %s (%s): loss differs by %g", model, name, text, loss);
    ck_assert_msg(gradient <= LIMIT, "%s under %s (%s): gradient of %s differs by %g", model, name,
                  text, worst, gradient);
    bool counts = !options->open && (!options->collectives || options->collectives->sent);
    for (int rank = 0; rank < out->ranks && counts; rank++)
        ck_assert_msg(out->sent[rank] == out->words[rank],
                      "%s under %s (%s): rank %d sent %lu words, its program says %lu", model, name,
                      text, rank, (unsigned long)out->sent[rank], (unsigned long)out->words[rank]);
}

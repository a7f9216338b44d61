/* optimizer.c - the schedule is a linear warmup, then a cosine to a tenth of the peak. Updates are
 * of plain slices in batches; of shares of a holding piece by piece, each announced in the
 * holding's journal and skipped if it is done already. */
#include "worker/interpreter/optimizer.h"

#include <math.h>

#define UPDATES_TOGETHER 64 /* slices per call to the device */

double optimizer_rate(const struct optimizer *optimizer, uint64_t step)
{
    if (step < optimizer->warmup)
        return optimizer->rate * (double)(step + 1) / (double)optimizer->warmup;
    if (step >= optimizer->steps)
        return optimizer->rate * 0.1;
    double done =
        (double)(step - optimizer->warmup) / (double)(optimizer->steps - optimizer->warmup);
    return optimizer->rate * (0.1 + 0.45 * (1 + cos(3.14159265358979323846 * done)));
}

struct update_step update_step_unseen(const struct optimizer *optimizer, uint64_t step,
                                      const float *metrics)
{
    return (struct update_step){
        .step = step, .rate = optimizer_rate(optimizer, step), .metrics = metrics};
}

struct update_step update_step_of(const struct optimizer *optimizer, uint64_t step,
                                  const float metrics[METRICS])
{
    struct update_step of = update_step_unseen(optimizer, step, metrics);
    of.loss = (double)metrics[METRIC_LOSS];
    of.norm = sqrt((double)metrics[METRIC_SQUARE_SUM]);
    of.skipped = !(isfinite(of.loss) && isfinite(of.norm));
    return of;
}

static struct update_call call_of(const struct update_rule *rule, const struct update_step *step,
                                  const struct update_slice *slice)
{
    const struct optimizer *optimizer = rule->optimizer;
    return (struct update_call){
        .parameter = slice->parameter,
        .gradient = slice->gradient,
        .first = slice->first,
        .second = slice->second,
        .count = slice->count,
        .rate = (float)step->rate,
        .beta1 = (float)optimizer->beta1,
        .beta2 = (float)optimizer->beta2,
        .epsilon = (float)optimizer->epsilon,
        .decay = rule->graph->tensors[slice->tensor].decays ? (float)optimizer->decay : 0,
        .loss = &step->metrics[METRIC_LOSS],
        .square_sum = &step->metrics[METRIC_SQUARE_SUM],
        .clip = (float)optimizer->clip,
        .step = step->step + 1,
    };
}

void update_slices(const struct update_rule *rule, const struct update_step *step,
                   const struct update_slice *slices, size_t count)
{
    const struct device *device = rule->device;
    struct update_call calls[UPDATES_TOGETHER];
    for (size_t done = 0; done < count && !step->skipped;) {
        int taken = 0;
        while (taken < UPDATES_TOGETHER && done < count)
            calls[taken++] = call_of(rule, step, &slices[done++]);
        if (device->update_all)
            device->update_all(calls, taken);
        for (int i = 0; i < taken && !device->update_all; i++)
            device->update(&calls[i]);
    }
}

void update_share(const struct update_rule *rule, const struct update_step *step,
                  struct holding *holding, size_t index)
{
    size_t ignored;
    const struct share *share = &holding_shares(holding, &ignored)[index];
    size_t count = (size_t)box_count(&share->box);
    for (size_t first = 0; first < count && !step->skipped; first += PIECE_ELEMENTS) {
        size_t left = count - first, piece = first / PIECE_ELEMENTS;
        const struct update_slice slice = {
            .tensor = share->tensor,
            .parameter = holding_at(holding, share->master) + first,
            .gradient = holding_at(holding, share->gradient) + first,
            .first = holding_at(holding, share->first) + first,
            .second = holding_at(holding, share->second) + first,
            .count = left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS,
        };
        if (!holding_begin_piece(holding, index, piece))
            continue;
        update_slices(rule, step, &slice, 1);
        holding_end_piece(holding, index, piece);
    }
}

void update_finish(const struct update_rule *rule, struct holding *holding)
{
    const struct standing *standing = holding_standing(holding);
    size_t count;
    if (!standing->applying)
        return;
    const struct update_step step = update_step_of(rule->optimizer, standing->step, standing->next);
    holding_shares(holding, &count);
    for (size_t i = 0; i < count; i++)
        update_share(rule, &step, holding, i);
    holding_applied(holding);
}

void update_holding(const struct update_rule *rule, struct holding *holding,
                    const float metrics[METRICS])
{
    holding_apply(holding, metrics);
    update_finish(rule, holding);
}

/* divide.c - how that project divides layers over stages before it searches.
 *
 * Layers of one type are divided evenly, with the remainder in the last stage. Otherwise layers are
 * dealt out by the memory that they take with data parallelism alone: a stage is full when what is
 * left to the average is less than half of the next layer. Stages beyond 1.3 times the average then
 * give layers to the next one, and stages without a layer take one. */
#include "coordinator/planner/galvatron/search.h"

#include <errno.h>

#define CROWDED 1.3

static void divide_evenly(int layers, int pp, int *division)
{
    for (int i = 0; i < pp; i++)
        division[i] = i < pp - 1 ? layers / pp : layers - layers / pp * (pp - 1);
}

struct weights {
    const struct galvatron_spec *spec;
    double layer[GALVATRON_TYPES_MAX], end[GALVATRON_STAGES_MAX];
    double average;
};

static double weight_of(const struct weights *weights, int layer)
{
    return weights->layer[galvatron_type_of(weights->spec, layer)];
}

static int weigh(const struct galvatron_problem *problem, const struct galvatron_point *point,
                 struct weights *out, struct error *err)
{
    struct galvatron_problem gpipe = *problem;
    struct galvatron_point plain = *point;
    int width = galvatron_devices(&problem->spec) / point->pp;
    struct galvatron_strategy data = {
        .tp = 1, .dp = width, .consecutive = true, .zero = problem->spec.zero2 ? 2 : 0};
    double sum = 0;
    gpipe.spec.gpipe = true;
    plain.min_tp = plain.vtp = 1;
    plain.vsp = plain.embed_sdp = false;
    *out = (struct weights){.spec = &problem->spec};
    for (int type = 0; type < problem->spec.type_count; type++) {
        int rc = galvatron_layer_mb(&gpipe, type, &data, &plain, 0, &out->layer[type], err);
        if (rc < 0)
            return rc;
        sum += out->layer[type] * problem->spec.types[type].count;
    }
    for (int i = 0; i < point->pp; i++) {
        int rc = galvatron_ends_mb(&gpipe, &plain, i, &out->end[i], err);
        if (rc < 0)
            return rc;
        sum += out->end[i];
    }
    out->average = sum / point->pp;
    return 0;
}

static void divide_by_weight(const struct weights *weights, int layers, int pp, int *division)
{
    int next = 0, first = 0;
    for (int i = 0; i < pp; i++) {
        double weight = weights->end[i];
        for (division[i] = 0; next < layers; next++, division[i]++) {
            if (i < pp - 1 && weights->average - weight < 0.5 * weight_of(weights, next))
                break;
            weight += weight_of(weights, next);
        }
    }
    for (int i = 0; i < pp - 1; i++) {
        double weight = weights->end[i];
        int end = first + division[i];
        for (int l = first; l < end; l++)
            weight += weight_of(weights, l);
        while (weight > weights->average * CROWDED && end > 0) {
            division[i]--;
            division[i + 1]++;
            weight -= weight_of(weights, --end);
        }
        first += division[i];
    }
    for (int i = 0; i < pp - 1; i++)
        for (; division[i] <= 0; division[i]++)
            division[i + 1]--;
    for (int i = pp - 1; i > 0; i--)
        for (; division[i] <= 0; division[i]++)
            division[i - 1]--;
}

int galvatron_divide(const struct galvatron_problem *problem, const struct galvatron_point *point,
                     int *division, struct error *err)
{
    int layers = galvatron_layers(&problem->spec), rc;
    struct weights weights;
    if (layers < point->pp)
        return error_set(err, -EINVAL, "%d stages are more than %d layers", point->pp, layers);
    if (problem->spec.type_count == 1 || point->pp == 1) {
        divide_evenly(layers, point->pp, division);
        return 0;
    }
    rc = weigh(problem, point, &weights, err);
    if (rc == 0)
        divide_by_weight(&weights, layers, point->pp, division);
    return rc;
}

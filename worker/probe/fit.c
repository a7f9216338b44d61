/* fit.c - least squares without negative parts (Lawson and Hanson 1974, chapter 23), by looking at
 * every set of terms: there are seven. */
#include "worker/probe/fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Terms of which one leaves so little of another, as squares, are one and the same. */
#define SINGULAR 1e-9
/* A set of terms is better than one before it only if it leaves so much less of the error. */
#define BETTER 0.99
#define ROUNDING 1e-12

/* Sets of terms, as bits. */
static const unsigned sets[] = {
    1 << FIT_FIXED | 1 << FIT_FLOPS,
    1 << FIT_FIXED | 1 << FIT_BYTES,
    1 << FIT_FLOPS | 1 << FIT_BYTES,
    1 << FIT_FLOPS,
    1 << FIT_BYTES,
    1 << FIT_FIXED,
    1 << FIT_FIXED | 1 << FIT_FLOPS | 1 << FIT_BYTES,
};

struct system {
    double matrix[FIT_TERMS][FIT_TERMS], right[FIT_TERMS];
};

/* Sums over the samples, each divided by what it took, and each term by its unit: all are 1 on the
 * diagonal. */
static void add_up(const struct fit_sample *samples, size_t count, const double units[FIT_TERMS],
                   unsigned set, struct system *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < FIT_TERMS; i++) {
        out->matrix[i][i] = set >> i & 1 ? 0 : 1; /* one that is not in the set is 0 */
        for (size_t s = 0; s < count && set >> i & 1; s++) {
            double own = samples[s].work[i] / units[i] / samples[s].seconds;
            out->right[i] += own;
            for (int j = 0; j < FIT_TERMS; j++)
                if (set >> j & 1)
                    out->matrix[i][j] += own * samples[s].work[j] / units[j] / samples[s].seconds;
        }
    }
}

/* Gauss and Jordan; a matrix of such sums needs no other order of rows. false: the terms depend on
 * each other. */
static bool solve(struct system *system, double out[FIT_TERMS])
{
    for (int column = 0; column < FIT_TERMS; column++) {
        if (!(system->matrix[column][column] > SINGULAR))
            return false;
        for (int row = 0; row < FIT_TERMS; row++) {
            double share = system->matrix[row][column] / system->matrix[column][column];
            for (int j = 0; j < FIT_TERMS && row != column; j++)
                system->matrix[row][j] -= share * system->matrix[column][j];
            system->right[row] -= row == column ? 0 : share * system->right[column];
        }
    }
    for (int i = 0; i < FIT_TERMS; i++)
        out[i] = system->right[i] / system->matrix[i][i];
    return true;
}

/* Sum of the squares of the relative errors. */
static double error_of(const struct fit_sample *samples, size_t count, const double *terms)
{
    double sum = 0;
    for (size_t s = 0; s < count; s++) {
        double seconds = 0;
        for (int i = 0; i < FIT_TERMS; i++)
            seconds += terms[i] * samples[s].work[i];
        sum += (seconds / samples[s].seconds - 1) * (seconds / samples[s].seconds - 1);
    }
    return sum;
}

/* The best of one set; false: there is none without negative parts. */
static bool fit_set(const struct fit_sample *samples, size_t count, const double units[FIT_TERMS],
                    unsigned set, double out[FIT_TERMS])
{
    struct system system;
    add_up(samples, count, units, set, &system);
    bool found = solve(&system, out);
    for (int i = 0; i < FIT_TERMS && found; i++) {
        found = out[i] >= 0;
        out[i] = set >> i & 1 ? out[i] / units[i] : 0;
    }
    return found;
}

void fit_work(const struct fit_sample *samples, size_t count, double out[FIT_TERMS])
{
    double units[FIT_TERMS] = {0}, least = INFINITY;
    unsigned known = 0; /* terms of which there is any work */
    for (int i = 0; i < FIT_TERMS; i++) {
        for (size_t s = 0; s < count; s++)
            units[i] = hypot(units[i], samples[s].work[i] / samples[s].seconds);
        known |= units[i] > 0 ? 1u << i : 0;
    }
    memset(out, 0, FIT_TERMS * sizeof *out);
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        double terms[FIT_TERMS], error;
        if (!fit_set(samples, count, units, sets[k] & known, terms))
            continue;
        error = error_of(samples, count, terms);
        if (error < BETTER * least - ROUNDING) {
            least = error;
            memcpy(out, terms, sizeof terms);
        }
    }
}

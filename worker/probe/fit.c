/* fit.c - non-negative least squares (Lawson and Hanson 1974, chapter 23). With three terms there
 * are only seven sets that may be positive, so each is solved without constraints, and the best
 * solution that has no negative term wins. */
#include "worker/probe/fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A pivot at most this large, of a matrix with a unit diagonal, means that terms are linearly
 * dependent. */
#define SINGULAR 1e-9
/* A later set of terms wins only if its error is less than this share of the best so far. */
#define BETTER 0.99
#define ROUNDING 1e-12

/* Sets of terms, as bits, in the order of preference. */
static const unsigned sets[] = {
    1 << FIT_FIXED | 1 << FIT_FLOPS,
    1 << FIT_FIXED | 1 << FIT_BYTES,
    1 << FIT_FLOPS | 1 << FIT_BYTES,
    1 << FIT_FLOPS,
    1 << FIT_BYTES,
    1 << FIT_FIXED,
    1 << FIT_FIXED | 1 << FIT_FLOPS | 1 << FIT_BYTES,
};

/* The normal equations. */
struct system {
    double matrix[FIT_TERMS][FIT_TERMS], right[FIT_TERMS];
};

/* Build the normal equations. Samples are divided by their seconds, which makes errors relative,
 * and terms by their units, which makes the diagonal 1. */
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

/* Gauss-Jordan elimination; no pivoting is needed, because the matrix is positive semidefinite.
 * False: the terms are linearly dependent. */
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

/* Fit one set of terms; the others become 0. False: a term is negative, or they are dependent. */
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

struct hardware_link fit_link(int ranks, double bytes, double little_s, double much_s)
{
    double steps = 2.0 * (ranks - 1);
    double bytes_s = much_s > little_s ? much_s - little_s : much_s;
    return (struct hardware_link){fmin(little_s, much_s) / steps,
                                  bytes_s / (steps / ranks * bytes)};
}

/* optimizer.c - learning rate schedule: linear warmup, then a cosine to a tenth of the peak. */
#include "worker/interpreter/optimizer.h"

#include <math.h>

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

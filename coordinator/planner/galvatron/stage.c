/* stage.c - prices first, then what the prices leave open.
 *
 * With a price per MB, and a part `share` of the weight as the price of a
 * second that is done once, each layer takes the option with the least seconds
 * + share x weight x once_s + price x MB. The sum of these minus price x memory
 * minus share x weight x free_s is a bound from below, for any price and any
 * share of 0 to 1. At a share, the price with the greatest bound lies where two
 * such answers meet, of which one fits, and a mixture of the two is an answer,
 * too. If what is done once is hidden at share 0, or is not at share 1, no
 * other share gives more; in between, the best one is found by halving.
 *
 * What is left between the bound and the best answer is searched: labels (MB,
 * seconds, once_s), layer by layer, where options that cost more than what is
 * left over the run's cheapest at the prices are not tried, and of two labels
 * the one that is nowhere better is dropped. */
#include "coordinator/planner/galvatron/stage.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 16
#define HALVINGS 12
/* Labels of one knapsack, with one cost and with two; beyond, the best answer so far has to do. */
#define LABELS_MAX (1 << 16)
#define LABELS_OF_TWO_MAX (1 << 12)
#define CLOSE 1e-9 /* an answer so close to the bound is not improved */

static int by_memory(const void *a, const void *b)
{
    const struct galvatron_option *one = a, *other = b;
    if (one->mb != other->mb)
        return one->mb < other->mb ? -1 : 1;
    if (one->seconds != other->seconds)
        return one->seconds < other->seconds ? -1 : 1;
    if (one->once_s != other->once_s)
        return one->once_s < other->once_s ? -1 : 1;
    return one->number - other->number;
}

int galvatron_thin(struct galvatron_option *options, int count)
{
    int kept = 0;
    if (count > 1)
        qsort(options, (size_t)count, sizeof *options, by_memory);
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < kept &&
               (options[k].seconds > options[i].seconds || options[k].once_s > options[i].once_s))
            k++;
        if (k == kept)
            options[kept++] = options[i];
    }
    return kept;
}

/* One option for each run, and their sums. */
struct answer {
    int option[RUNS_MAX];
    double cost; /* with the share of once_s */
    double once_s;
    int64_t mb;
};

/* A stage at a share. */
struct shared {
    const struct galvatron_stage *stage;
    double once; /* price of a second that is done once */
    bool flat;   /* all of it counts so much, whatever is hidden */
};

static double option_cost(const struct shared *shared, const struct galvatron_option *option)
{
    return option->seconds + shared->once * option->once_s;
}

/* The cheapest at a price; of equal ones that with the least memory. */
static struct answer answer_at(const struct shared *shared, double price)
{
    struct answer answer = {.cost = 0};
    for (int r = 0; r < shared->stage->run_count; r++) {
        const struct galvatron_run *run = &shared->stage->runs[r];
        const struct galvatron_option *best = run->options;
        double least = option_cost(shared, best) + price * (double)best->mb;
        for (int i = 1; i < run->option_count; i++) {
            double cost =
                option_cost(shared, &run->options[i]) + price * (double)run->options[i].mb;
            if (cost < least) {
                least = cost;
                best = &run->options[i];
            }
        }
        answer.option[r] = (int)(best - run->options);
        answer.cost += run->count * option_cost(shared, best);
        answer.once_s += run->count * best->once_s;
        answer.mb += run->count * best->mb;
    }
    return answer;
}

static struct answer answer_of_least_memory(const struct shared *shared)
{
    struct answer answer = {.cost = 0};
    for (int r = 0; r < shared->stage->run_count; r++) {
        const struct galvatron_run *run = &shared->stage->runs[r];
        int best = 0;
        for (int i = 1; i < run->option_count && run->options[i].mb == run->options[0].mb; i++)
            if (option_cost(shared, &run->options[i]) < option_cost(shared, &run->options[best]))
                best = i;
        answer.option[r] = best;
        answer.cost += run->count * option_cost(shared, &run->options[best]);
        answer.once_s += run->count * run->options[best].once_s;
        answer.mb += run->count * run->options[best].mb;
    }
    return answer;
}

/* A mixture of an answer that fits and one that need not, and the bound that
 * they give. */
struct mixture {
    struct answer small, large; /* equal where the cheapest fits */
    double price, bound;
    bool fits;
};

static struct mixture mix_at(const struct shared *shared)
{
    const struct galvatron_stage *stage = shared->stage;
    struct mixture out = {.small = answer_of_least_memory(shared), .large = answer_at(shared, 0)};
    out.fits = out.small.mb <= stage->mb;
    if (!out.fits)
        return out;
    if (out.large.mb <= stage->mb)
        out.small = out.large;
    while (out.large.mb > stage->mb) {
        out.price = (out.small.cost - out.large.cost) / (double)(out.large.mb - out.small.mb);
        struct answer answer = answer_at(shared, out.price);
        double gain = out.small.cost + out.price * (double)out.small.mb -
                      (answer.cost + out.price * (double)answer.mb);
        if (gain <= 1e-13 * fabs(out.small.cost) || answer.mb == out.small.mb ||
            answer.mb == out.large.mb)
            break;
        *(answer.mb <= stage->mb ? &out.small : &out.large) = answer;
    }
    out.bound = out.small.cost + out.price * (double)(out.small.mb - stage->mb);
    if (!shared->flat)
        out.bound -= shared->once * stage->free_s;
    return out;
}

/* The best answer so far: what it costs, what is done once, and the option of every layer if they
 * are wanted. */
struct best {
    double cost, once_s;
    int *numbers;
};

static double cost_of(const struct shared *shared, double seconds, double once_s)
{
    const struct galvatron_stage *stage = shared->stage;
    return shared->flat ? seconds + shared->once * once_s
                        : seconds + stage->weight * fmax(0, once_s - stage->free_s);
}

/* As many layers as possible as in the answer that does not fit, the others as
 * in the one that does.
 */
static void take_mixture(const struct shared *shared, const struct mixture *mixture,
                         struct best *best)
{
    const struct galvatron_stage *stage = shared->stage;
    int64_t left = stage->mb - mixture->small.mb;
    double seconds = 0, once_s = 0;
    int switched[RUNS_MAX];
    for (int r = 0; r < stage->run_count; r++) {
        const struct galvatron_run *run = &stage->runs[r];
        const struct galvatron_option *low = &run->options[mixture->small.option[r]];
        const struct galvatron_option *high = &run->options[mixture->large.option[r]];
        int64_t each = high->mb - low->mb, most = each > 0 ? left / each : 0;
        switched[r] = (int)(most < run->count ? most : run->count);
        left -= switched[r] * each;
        seconds += switched[r] * high->seconds + (run->count - switched[r]) * low->seconds;
        once_s += switched[r] * high->once_s + (run->count - switched[r]) * low->once_s;
    }
    double cost = cost_of(shared, seconds, once_s);
    if (cost >= best->cost)
        return;
    best->cost = cost;
    best->once_s = once_s;
    for (int r = 0, layer = 0; r < stage->run_count && best->numbers; r++) {
        const struct galvatron_run *run = &stage->runs[r];
        for (int i = 0; i < run->count; i++)
            best->numbers[layer++] =
                run->options[i < switched[r] ? mixture->large.option[r] : mixture->small.option[r]]
                    .number;
    }
}

/* The greatest bound, at the share that *out becomes; best takes what is met on
 * the way. false: nothing fits. */
static bool find_share(const struct galvatron_stage *stage, struct shared *out,
                       struct mixture *mixture, struct best *best)
{
    double low = 0, high = stage->weight;
    *out = (struct shared){stage, low, false};
    *mixture = mix_at(out);
    if (!mixture->fits)
        return false;
    take_mixture(out, mixture, best);
    if (mixture->small.once_s <= stage->free_s && mixture->large.once_s <= stage->free_s)
        return true; /* all of it is hidden */
    for (int i = 0; i < HALVINGS && high > low && best->cost > mixture->bound * (1 + CLOSE); i++) {
        /* The whole weight first: that is right wherever nothing is hidden. */
        struct shared shared = {stage, i == 0 ? high : (low + high) / 2, false};
        struct mixture next = mix_at(&shared);
        take_mixture(&shared, &next, best);
        if (next.bound > mixture->bound) {
            *mixture = next;
            *out = shared;
        }
        bool shown = next.small.once_s >= stage->free_s;
        if (i == 0 && shown && next.large.once_s >= stage->free_s)
            break;
        if (i > 0)
            *(shown ? &low : &high) = shared.once;
    }
    return true;
}

double galvatron_fill_bound(const struct galvatron_stage *stage)
{
    struct shared shared;
    struct mixture mixture;
    struct best best = {.cost = INFINITY};
    for (int r = 0; r < stage->run_count; r++)
        if (stage->runs[r].option_count == 0)
            return INFINITY;
    return find_share(stage, &shared, &mixture, &best) ? mixture.bound : INFINITY;
}

/* Layers with an option each, and the label that they extend. */
struct label {
    int64_t mb;
    double seconds, once_s;
    double excess;      /* over what every run's cheapest takes at the prices */
    int option, before; /* -1: no layers yet */
};

struct labels {
    struct label *items;
    size_t count, capacity;
};

struct filling {
    const struct galvatron_stage *stage;
    struct shared shared;
    double price, most_excess;
    size_t labels_max;
    struct labels all; /* kept for their traces */
};

/* Indices of labels in `all`, none of which is beaten by another, by MB. */
struct front {
    int *items;
    size_t count, capacity;
};

static bool is_beaten(const struct filling *filling, const struct label *by,
                      const struct label *label)
{
    const struct shared *shared = &filling->shared;
    if (shared->flat)
        return by->mb <= label->mb && cost_of(shared, by->seconds, by->once_s) <=
                                          cost_of(shared, label->seconds, label->once_s);
    return by->mb <= label->mb && by->seconds <= label->seconds && by->once_s <= label->once_s;
}

static void front_add(struct filling *filling, struct front *front, struct label label)
{
    const struct label *all = filling->all.items;
    size_t low = 0, high = front->count, kept; /* the first that takes more MB */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all[front->items[middle]].mb <= label.mb)
            low = middle + 1;
        else
            high = middle;
    }
    /* With a single cost, which falls as MB rise, the nearest beats it, or none does. */
    size_t last = !filling->shared.flat || low == 0 ? 0 : low - 1;
    for (size_t i = low; i > last; i--)
        if (is_beaten(filling, &all[front->items[i - 1]], &label))
            return;
    while (low > 0 && all[front->items[low - 1]].mb == label.mb)
        low--;
    kept = low;
    for (size_t i = low; i < front->count; i++)
        if (!is_beaten(filling, &label, &all[front->items[i]]))
            front->items[kept++] = front->items[i];
    front->count = kept;
    front->items = grow(front->items, front->count, &front->capacity, sizeof *front->items);
    memmove(front->items + low + 1, front->items + low, (kept - low) * sizeof *front->items);
    front->items[low] = (int)filling->all.count;
    front->count++;
    filling->all.items =
        grow(filling->all.items, filling->all.count, &filling->all.capacity, sizeof label);
    filling->all.items[filling->all.count++] = label;
}

/* Extend the labels of one layer less by a layer with this option. */
static void front_extend(struct filling *filling, const struct galvatron_run *run, int option,
                         double excess, int64_t rest_mb, const struct front *less,
                         struct front *front)
{
    const struct galvatron_option *of = &run->options[option];
    for (size_t i = 0; i < less->count; i++) {
        const struct label *old = &filling->all.items[less->items[i]];
        struct label label = {.mb = old->mb + of->mb,
                              .seconds = old->seconds + of->seconds,
                              .once_s = old->once_s + of->once_s,
                              .excess = old->excess + excess,
                              .option = option,
                              .before = less->items[i]};
        if (label.excess <= filling->most_excess && label.mb + rest_mb <= filling->stage->mb)
            front_add(filling, front, label);
    }
}

/* All labels of a run's layers, from those before it: *front becomes those
 * after it. rest_mb: what the runs behind it take at least. */
static void front_run(struct filling *filling, const struct galvatron_run *run, int64_t rest_mb,
                      struct front *front)
{
    struct front *fronts = xcalloc((size_t)run->count + 1, sizeof *fronts);
    double cheapest = INFINITY;
    for (int i = 0; i < run->option_count; i++)
        cheapest = fmin(cheapest, option_cost(&filling->shared, &run->options[i]) +
                                      filling->price * (double)run->options[i].mb);
    fronts[0] = *front;
    for (int i = 0; i < run->option_count; i++) {
        const struct galvatron_option *of = &run->options[i];
        double excess =
            option_cost(&filling->shared, of) + filling->price * (double)of->mb - cheapest;
        for (int l = 1; l <= run->count && excess <= filling->most_excess &&
                        filling->all.count < filling->labels_max;
             l++)
            front_extend(filling, run, i, excess, rest_mb + (run->count - l) * run->options[0].mb,
                         &fronts[l - 1], &fronts[l]);
    }
    *front = fronts[run->count];
    for (int l = 0; l < run->count; l++)
        free(fronts[l].items);
    free(fronts);
}

/* Improve the best answer by what is within the excess. */
static void search_rest(struct filling *filling, struct best *best)
{
    const struct galvatron_stage *stage = filling->stage;
    struct front front = {0};
    int found = -1, layer = 0;
    front_add(filling, &front, (struct label){.option = -1, .before = -1});
    for (int r = 0; r < stage->run_count; r++) {
        int64_t rest_mb = 0;
        for (int later = r + 1; later < stage->run_count; later++)
            rest_mb += stage->runs[later].count * stage->runs[later].options[0].mb;
        front_run(filling, &stage->runs[r], rest_mb, &front);
        layer += stage->runs[r].count;
    }
    for (size_t i = 0; i < front.count; i++) {
        const struct label *label = &filling->all.items[front.items[i]];
        double cost = cost_of(&filling->shared, label->seconds, label->once_s);
        if (cost < best->cost) {
            best->cost = cost;
            best->once_s = label->once_s;
            found = front.items[i];
        }
    }
    for (int r = stage->run_count - 1; r >= 0 && found >= 0 && best->numbers; r--)
        for (int n = 0; n < stage->runs[r].count; n++) {
            const struct label *label = &filling->all.items[found];
            best->numbers[--layer] = stage->runs[r].options[label->option].number;
            found = label->before;
        }
    free(front.items);
    free(filling->all.items);
}

/* The least cost at a fixed price of what is done once. false: nothing fits. */
static bool fill_flat(const struct galvatron_stage *stage, double once, struct best *best)
{
    struct filling filling = {
        .stage = stage, .shared = {stage, once, true}, .labels_max = LABELS_MAX};
    struct mixture mixture = mix_at(&filling.shared);
    best->cost = INFINITY;
    if (!mixture.fits)
        return false;
    take_mixture(&filling.shared, &mixture, best);
    filling.price = mixture.price;
    filling.most_excess = best->cost - mixture.bound;
    if (filling.most_excess > CLOSE * best->cost)
        search_rest(&filling, best);
    return true;
}

/* What is hidden in part: between the two prices. */
static double fill_between(const struct galvatron_stage *stage, struct best *best)
{
    struct mixture mixture;
    struct filling filling = {.stage = stage, .labels_max = LABELS_OF_TWO_MAX};
    find_share(stage, &filling.shared, &mixture, best);
    filling.price = mixture.price;
    filling.most_excess = best->cost - mixture.bound;
    if (filling.most_excess > CLOSE * best->cost)
        search_rest(&filling, best);
    return best->cost;
}

double galvatron_fill(const struct galvatron_stage *stage, int *numbers)
{
    struct best best = {INFINITY, 0, numbers};
    for (int r = 0; r < stage->run_count; r++)
        if (stage->runs[r].option_count == 0)
            return INFINITY;
    /* With none of the weight it is the least cost if all is hidden, and with all of the weight if
     * nothing is; each is a bound from below, and an answer. */
    if (!fill_flat(stage, 0, &best))
        return INFINITY;
    if (stage->weight == 0 || best.once_s <= stage->free_s)
        return best.cost;
    double shown = best.cost + stage->weight * (best.once_s - stage->free_s);
    fill_flat(stage, stage->weight, &best);
    if (best.once_s >= stage->free_s)
        return best.cost - stage->weight * stage->free_s;
    best.cost -= stage->weight * best.once_s; /* all of it is hidden */
    if (shown < best.cost) {
        fill_flat(stage, 0, &best);
        best.cost = shown;
    }
    return fill_between(stage, &best);
}

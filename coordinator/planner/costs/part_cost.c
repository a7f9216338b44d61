/* part_cost.c - prices the instructions of a part, and decides what is hidden by computing. */
#include "coordinator/planner/costs/part_cost.h"

#include <math.h>

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void part_cost_add(struct part_cost *sum, const struct part_cost *cost)
{
    sum->forward_s += cost->forward_s;
    sum->backward_s += cost->backward_s;
    sum->least_s += cost->least_s;
    sum->least_both_s += cost->least_both_s;
    sum->least_once_s += cost->least_once_s;
    sum->fixed_s += cost->fixed_s;
    sum->fixed_back_s += cost->fixed_back_s;
    sum->once_s += cost->once_s;
}

static struct part_bytes larger_bytes(const struct part_bytes *a, const struct part_bytes *b)
{
    return (struct part_bytes){
        .state = larger(a->state, b->state),
        .saved = larger(a->saved, b->saved),
        .communication = larger(a->communication, b->communication),
        .beside = larger(a->beside, b->beside),
        .forward = larger(a->forward, b->forward),
        .other = larger(a->other, b->other),
        .passing = larger(a->passing, b->passing),
    };
}

static void take_longer(double most[QUEUES], const double seconds[QUEUES])
{
    for (int queue = 0; queue < QUEUES; queue++)
        most[queue] = fmax(most[queue], seconds[queue]);
}

void part_cost_larger(struct part_cost *most, const struct part_cost *cost)
{
    most->forward_s = cost->forward_s > most->forward_s ? cost->forward_s : most->forward_s;
    most->backward_s = cost->backward_s > most->backward_s ? cost->backward_s : most->backward_s;
    most->fixed_s = cost->fixed_s > most->fixed_s ? cost->fixed_s : most->fixed_s;
    most->fixed_back_s = fmax(most->fixed_back_s, cost->fixed_back_s);
    most->once_s = cost->once_s > most->once_s ? cost->once_s : most->once_s;
    most->least_s = fmin(most->least_s, cost->least_s);
    most->least_both_s = fmin(most->least_both_s, cost->least_both_s);
    most->least_once_s = fmin(most->least_once_s, cost->least_once_s);
    take_longer(most->seconds.forward, cost->seconds.forward);
    take_longer(most->seconds.backward, cost->seconds.backward);
    take_longer(most->seconds.weights, cost->seconds.weights);
    take_longer(most->seconds.reduce, cost->seconds.reduce);
    most->seconds.other = fmax(most->seconds.other, cost->seconds.other);
    most->bytes = larger_bytes(&most->bytes, &cost->bytes);
}

const struct part_bytes *part_cost_bytes(const struct part_cost *cost, int rank)
{
    return cost->ranks ? &cost->ranks[rank] : &cost->bytes;
}

static bool no_more(const struct part_bytes *a, const struct part_bytes *b)
{
    return a->state <= b->state && a->saved <= b->saved && a->communication <= b->communication &&
           a->beside <= b->beside && a->forward <= b->forward && a->other <= b->other &&
           a->passing <= b->passing;
}

bool part_cost_no_larger(const struct part_cost *a, const struct part_cost *b, int ranks)
{
    if (!a->ranks && !b->ranks)
        return no_more(&a->bytes, &b->bytes);
    for (int rank = 0; rank < ranks; rank++)
        if (!no_more(part_cost_bytes(a, rank), part_cost_bytes(b, rank)))
            return false;
    return true;
}

/* Seconds of both queues side by side, each slowed by the factor while both run: Galvatron
 * (arXiv 2211.13878), section 3.3. */
static double side_by_side(const double seconds[QUEUES], double factor)
{
    double shorter = fmin(seconds[QUEUE_COMPUTE], seconds[QUEUE_COMMUNICATION]);
    double longer = fmax(seconds[QUEUE_COMPUTE], seconds[QUEUE_COMMUNICATION]);
    return shorter * factor + fmax(0, longer - shorter);
}

/* Seconds that `more` adds to a section: its computing in full, and its communication as far as it
 * cannot run beside the section's computing. */
static double part_cost_added(const double seconds[QUEUES], const double more[QUEUES],
                              double factor)
{
    double both[QUEUES] = {seconds[QUEUE_COMPUTE],
                           seconds[QUEUE_COMMUNICATION] + more[QUEUE_COMMUNICATION]};
    return more[QUEUE_COMPUTE] + side_by_side(both, factor) - side_by_side(seconds, factor);
}

/* See least_both_s. */
static double at_least(const double seconds[QUEUES], double factor)
{
    return seconds[QUEUE_COMPUTE] + (factor - 1) * seconds[QUEUE_COMMUNICATION];
}

static void part_cost_overlap(struct part_cost *cost, double factor)
{
    const struct part_seconds *seconds = &cost->seconds;
    cost->forward_s = side_by_side(seconds->forward, factor);
    cost->backward_s = side_by_side(seconds->backward, factor);
    cost->once_s = seconds->other + part_cost_added(seconds->forward, seconds->weights, factor) +
                   part_cost_added(seconds->backward, seconds->reduce, factor);
}

static void add_section(const struct pricing *pricing, const struct program *program,
                        enum section section, double seconds[QUEUES])
{
    struct range range = program->sections[section];
    for (int i = range.first; i < range.first + range.count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        seconds[instruction->queue] += pricing_seconds(pricing, program, instruction);
    }
}

static double fixed_seconds(const struct pricing *pricing, const struct program *program,
                            enum section section)
{
    struct range range = program->sections[section];
    double seconds = 0;
    for (int i = range.first; i < range.first + range.count; i++)
        seconds += pricing_fixed_seconds(pricing, program, &program->instructions[i]);
    return seconds;
}

struct part_cost part_cost_price(const struct pricing *pricing, const struct lowered_part *part)
{
    const struct program *program = part->program;
    struct part_cost cost = {
        .bytes = {.state = program->bytes[REGION_STATE],
                  .saved = program->slot_bytes,
                  .communication = program->bytes[REGION_COMMUNICATION] - 2 * program->beside_bytes,
                  .beside = program->beside_bytes,
                  .forward = part->forward_bytes,
                  .other = part->other_bytes,
                  .passing = part->passing_bytes},
    };
    double other[QUEUES] = {0};
    add_section(pricing, program, SECTION_FORWARD, cost.seconds.forward);
    add_section(pricing, program, SECTION_BACKWARD, cost.seconds.backward);
    add_section(pricing, program, SECTION_WEIGHTS, cost.seconds.weights);
    add_section(pricing, program, SECTION_REDUCE, cost.seconds.reduce);
    add_section(pricing, program, SECTION_CLEAR, other);
    add_section(pricing, program, SECTION_METRICS, other);
    add_section(pricing, program, SECTION_UPDATE, other);
    cost.seconds.other = other[QUEUE_COMPUTE];
    cost.fixed_back_s = fixed_seconds(pricing, program, SECTION_BACKWARD);
    cost.fixed_s = fixed_seconds(pricing, program, SECTION_FORWARD) + cost.fixed_back_s;
    double factor = pricing_overlap(pricing, program);
    part_cost_overlap(&cost, factor);
    cost.least_s = cost.seconds.forward[QUEUE_COMPUTE] + cost.seconds.backward[QUEUE_COMPUTE];
    cost.least_both_s =
        at_least(cost.seconds.forward, factor) + at_least(cost.seconds.backward, factor);
    cost.least_once_s = cost.seconds.other + at_least(cost.seconds.weights, factor) +
                        at_least(cost.seconds.reduce, factor);
    return cost;
}

void part_cost_leave_out(struct part_cost *cost, const struct part_cost *first, double factor)
{
    struct part_seconds *seconds = &cost->seconds;
    for (int queue = 0; queue < QUEUES; queue++) {
        seconds->weights[queue] = fmax(0, seconds->weights[queue] - first->seconds.weights[queue]);
        seconds->reduce[queue] = fmax(0, seconds->reduce[queue] - first->seconds.reduce[queue]);
    }
    seconds->other = fmax(0, seconds->other - first->seconds.other);
    part_cost_overlap(cost, factor);
    cost->least_once_s = 0;
    cost->bytes.state -= first->bytes.state;
}

/* simulate_clock.c - keeps track of what runs and when it ends.
 *
 * The two lanes of a rank share its cores and links, so while both run, each is slowed by a factor
 * that the timing gives. A collective is as slow as its slowest member. When the factor of an
 * activity changes, the work done so far is subtracted and its end recomputed. */
#include "common/program/simulate_internal.h"

/* ---- a heap: earliest end first, ties by the lowest rank ---- */

static bool earlier(const struct activity *a, const struct activity *b)
{
    if (a->ends_s != b->ends_s)
        return a->ends_s < b->ends_s;
    return a->lanes[0]->rank < b->lanes[0]->rank;
}

static void put(struct world *world, int place, struct activity *activity)
{
    world->clock[place] = activity;
    activity->place = place;
}

static void sift(struct world *world, struct activity *activity)
{
    int place = activity->place, count = world->clock_count;
    for (; place > 0 && earlier(activity, world->clock[(place - 1) / 2]); place = (place - 1) / 2)
        put(world, place, world->clock[(place - 1) / 2]);
    for (;;) {
        int child = 2 * place + 1;
        if (child + 1 < count && earlier(world->clock[child + 1], world->clock[child]))
            child++;
        if (child >= count || !earlier(world->clock[child], activity))
            break;
        put(world, place, world->clock[child]);
        place = child;
    }
    put(world, place, activity);
}

/* ---- activities ---- */

static void touch(struct world *world, int rank)
{
    if (!world->touched[rank])
        world->touched_ranks[world->touched_count++] = rank;
    world->touched[rank] = true;
}

void clock_begin(struct world *world, struct activity *activity, struct lane **lanes, int count,
                 double seconds)
{
    *activity = (struct activity){.lanes = lanes,
                                  .count = count,
                                  .left_s = seconds,
                                  .since_s = world->now_s,
                                  .factor = 1,
                                  .ends_s = world->now_s + seconds,
                                  .place = world->clock_count++};
    for (int i = 0; i < count; i++) {
        lanes[i]->state = LANE_RUNS;
        lanes[i]->activity = activity;
        lanes[i]->factor = 1;
        touch(world, lanes[i]->rank);
    }
    sift(world, activity);
}

struct activity *clock_end(struct world *world)
{
    if (world->clock_count == 0)
        return NULL;
    struct activity *first = world->clock[0], *last = world->clock[--world->clock_count];
    if (first != last) {
        last->place = 0;
        sift(world, last);
    }
    for (int i = 0; i < first->count; i++)
        touch(world, first->lanes[i]->rank);
    world->now_s = first->ends_s;
    return first;
}

/* ---- who slows whom ---- */

static void set_factor(struct world *world, struct activity *activity)
{
    double factor = 1;
    for (int i = 0; i < activity->count; i++)
        factor = activity->lanes[i]->factor > factor ? activity->lanes[i]->factor : factor;
    if (factor == activity->factor)
        return;
    activity->left_s -= (world->now_s - activity->since_s) / activity->factor;
    activity->since_s = world->now_s;
    activity->factor = factor;
    activity->ends_s = world->now_s + activity->left_s * factor;
    sift(world, activity);
}

static void adjust_lane(struct world *world, struct lane *lane, const struct lane *other)
{
    double factor = 1;
    if (lane->state != LANE_RUNS)
        return;
    if (other->state == LANE_RUNS && world->timing->slowdown)
        factor = world->timing->slowdown(world->timing->context, world->programs[lane->rank],
                                         lane_instruction(lane), lane_instruction(other));
    if (factor == lane->factor)
        return;
    lane->factor = factor;
    set_factor(world, lane->activity);
}

void clock_adjust(struct world *world)
{
    for (int i = 0; i < world->touched_count; i++) {
        int rank = world->touched_ranks[i];
        struct lane *compute = world_lane(world, rank, QUEUE_COMPUTE);
        struct lane *communication = world_lane(world, rank, QUEUE_COMMUNICATION);
        world->touched[rank] = false;
        adjust_lane(world, compute, communication);
        adjust_lane(world, communication, compute);
    }
    world->touched_count = 0;
}

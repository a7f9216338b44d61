/* pricing.c - finds the profile of an instruction's device, and the link that a group or a message
 * uses. */
#include "coordinator/planner/costs/pricing.h"

#include "coordinator/planner/costs/request.h"

#include <limits.h>
#include <math.h>

struct pricing pricing_plain(const struct planner_request *request)
{
    return (struct pricing){.request = request, .split = INT_MAX};
}

static const struct planner_device *device_of(const struct pricing *pricing, int rank)
{
    int index = rank < pricing->split ? pricing->offset[0] + rank
                                      : pricing->offset[1] + rank - pricing->split;
    return &pricing->request->devices[index];
}

bool pricing_on_one_host(const struct pricing *pricing, const struct program *program,
                         const struct instruction *instruction)
{
    const struct planner_device *own = device_of(pricing, program->rank);
    if (instruction->kind != INSTRUCTION_COLLECTIVE)
        return hosts_same(device_of(pricing, instruction->message.peer), own);
    const struct group *group = &program->groups[instruction->collective.group];
    for (int i = 0; i < group->count; i++)
        if (!hosts_same(device_of(pricing, group->ranks[i]), own))
            return false;
    return true;
}

static bool pricing_moves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
}

/* The stage's ranks on the host of this one, which are consecutive. */
static struct range ranks_here(const struct pricing *pricing, const struct program *program)
{
    const struct planner_device *own = device_of(pricing, program->rank);
    int first = program->rank, end = program->rank + 1;
    while (first > program->stage_first && hosts_same(device_of(pricing, first - 1), own))
        first--;
    while (end < program->stage_first + program->stage_ranks &&
           hosts_same(device_of(pricing, end), own))
        end++;
    return (struct range){first, end - first};
}

/* How many times the bytes that one rank sends leave its host at the same time, given that all
 * ranks of a stage do the same. Of messages, each rank sends its own. A ring leaves the host once
 * per group. In an all-to-all every member on the host sends a (count - 1)th of its bytes to each
 * of those on other hosts. */
static double count_transfers(const struct pricing *pricing, const struct program *program,
                              const struct instruction *instruction)
{
    struct range here = ranks_here(pricing, program);
    if (instruction->kind != INSTRUCTION_COLLECTIVE)
        return here.count;
    const struct group *group = &program->groups[instruction->collective.group];
    int members = 0;
    for (int i = 0; i < group->count; i++)
        members += group->ranks[i] >= here.first && group->ranks[i] < here.first + here.count;
    double groups = (double)here.count / members;
    if (instruction->collective.kind != COLLECTIVE_ALL_TO_ALL)
        return groups;
    return groups * members * (group->count - members) / (group->count - 1);
}

static bool on_network(const struct pricing *pricing, const struct program *program,
                       const struct instruction *instruction)
{
    return pricing_moves(instruction) && !pricing_on_one_host(pricing, program, instruction);
}

double pricing_seconds(const void *context, const struct program *program,
                       const struct instruction *instruction)
{
    const struct pricing *pricing = context;
    const struct profile *profile = device_of(pricing, program->rank)->profile;
    if (!on_network(pricing, program, instruction))
        return profile_seconds(profile, &profile->host, program, instruction);
    struct hardware_link link = profile->network;
    double cards = profile->network_cards;
    if (cards > 0)
        link.seconds_per_byte *= fmax(1, count_transfers(pricing, program, instruction) / cards);
    return profile_seconds(profile, &link, program, instruction);
}

double pricing_overlap(const struct pricing *pricing, const struct program *program)
{
    return device_of(pricing, program->rank)->profile->overlap;
}

/* Two transfers over one link have half of it each. */
double pricing_slowdown(const void *context, const struct program *program,
                        const struct instruction *instruction, const struct instruction *beside)
{
    const struct pricing *pricing = context;
    if (pricing_moves(instruction) && pricing_moves(beside) &&
        on_network(pricing, program, instruction) == on_network(pricing, program, beside))
        return 2;
    return pricing_overlap(pricing, program);
}

struct timing pricing_timing(const struct pricing *pricing)
{
    return (struct timing){pricing, pricing_seconds, pricing_slowdown};
}

double pricing_fixed_seconds(const struct pricing *pricing, const struct program *program,
                             const struct instruction *instruction)
{
    return profile_fixed_seconds(device_of(pricing, program->rank)->profile, program, instruction);
}

double pricing_micro_batch(const struct pricing *pricing, const struct program *program)
{
    double seconds = 0;
    for (int section = SECTION_FORWARD; section <= SECTION_BACKWARD; section++) {
        struct range range = program->sections[section];
        for (int i = range.first; i < range.first + range.count; i++)
            seconds += pricing_seconds(pricing, program, &program->instructions[i]);
    }
    return seconds;
}

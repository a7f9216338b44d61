/* pricing.c - a device's profile, and the link that a group or a message goes over. */
#include "coordinator/planner/costs/pricing.h"

#include "coordinator/planner/costs/hosts.h"

#include <limits.h>

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

static bool moves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
}

static const struct profile_link *link_of(const struct pricing *pricing,
                                          const struct program *program,
                                          const struct instruction *instruction)
{
    const struct profile *profile = device_of(pricing, program->rank)->profile;
    return moves(instruction) && !pricing_on_one_host(pricing, program, instruction)
               ? &profile->network
               : &profile->host;
}

double pricing_seconds(const void *context, const struct program *program,
                       const struct instruction *instruction)
{
    const struct pricing *pricing = context;
    const struct profile *profile = device_of(pricing, program->rank)->profile;
    return profile_seconds(profile, link_of(pricing, program, instruction), program, instruction);
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
    if (moves(instruction) && moves(beside) &&
        link_of(pricing, program, instruction) == link_of(pricing, program, beside))
        return 2;
    return pricing_overlap(pricing, program);
}

double pricing_fixed_seconds(const struct pricing *pricing, const struct program *program,
                             const struct instruction *instruction)
{
    return profile_fixed_seconds(device_of(pricing, program->rank)->profile, program, instruction);
}

/* pricing.c - a device's profile, and the link that a group or a message goes over. */
#include "coordinator/planner/pricing.h"

#include <limits.h>
#include <string.h>

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
    const char *host = device_of(pricing, program->rank)->host;
    if (instruction->kind != INSTRUCTION_COLLECTIVE)
        return strcmp(device_of(pricing, instruction->message.peer)->host, host) == 0;
    const struct group *group = &program->groups[instruction->collective.group];
    for (int i = 0; i < group->count; i++)
        if (strcmp(device_of(pricing, group->ranks[i])->host, host) != 0)
            return false;
    return true;
}

double pricing_seconds(const void *context, const struct program *program,
                       const struct instruction *instruction)
{
    const struct pricing *pricing = context;
    const struct profile *profile = device_of(pricing, program->rank)->profile;
    bool moves =
        instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
    const struct profile_link *link = moves && !pricing_on_one_host(pricing, program, instruction)
                                          ? &profile->network
                                          : &profile->host;
    return profile_seconds(profile, link, program, instruction);
}

double pricing_fixed_seconds(const struct pricing *pricing, const struct program *program,
                             const struct instruction *instruction)
{
    return profile_fixed_seconds(device_of(pricing, program->rank)->profile, program, instruction);
}

/* wish.c - alters devices and job settings for hypothetical questions. */
#include "coordinator/planner/wish.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void wished_init(struct wished *wished, const struct planner_device *devices, int count)
{
    *wished = (struct wished){.count = (size_t)count, .capacity = (size_t)count};
    wished->devices = xcalloc(wished->count, sizeof *devices);
    memcpy(wished->devices, devices, wished->count * sizeof *devices);
}

void wished_finish(struct wished *wished)
{
    for (size_t i = 0; i < wished->profile_count; i++)
        free(wished->profiles[i]);
    for (size_t i = 0; i < wished->text_count; i++)
        free(wished->texts[i]);
    free(wished->devices);
    free(wished->profiles);
    free(wished->texts);
    *wished = (struct wished){0};
}

/* Takes ownership of the text. */
static const char *wished_keep(struct wished *wished, char *text)
{
    wished->texts = grow(wished->texts, wished->text_count, &wished->text_capacity, sizeof(char *));
    wished->texts[wished->text_count++] = text;
    return text;
}

int wished_add(struct wished *wished, int more, struct error *err)
{
    const struct planner_device last = wished->devices[wished->count - 1];
    int each = 1; /* devices of the last host */
    if (!(last.profile->network.seconds_per_byte > 0))
        return error_set(
            err, -EINVAL,
            "devices that are added are on other nodes than %s, and no network is told "
            "of: write links.network in the cluster file",
            last.name);
    for (size_t i = 0; i + 1 < wished->count; i++)
        each += strcmp(wished->devices[i].host, last.host) == 0;
    const int before = (int)wished->count;
    for (int i = 0; i < more; i++) {
        struct planner_device device = last;
        /* it shares its cores with those that its example shares them with */
        device.cores = wished->devices[before - each + i % each].cores;
        device.name = wished_keep(wished, xasprintf("added-%d/%d", i / each, i % each));
        device.host = wished_keep(wished, xasprintf("added-%d", i / each));
        wished->devices = grow(wished->devices, wished->count, &wished->capacity, sizeof device);
        wished->devices[wished->count++] = device;
    }
    return 0;
}

/* Equally fast devices must share one profile: the planner recognizes like devices by its
 * address. */
static const struct profile *wished_share(struct wished *wished, const struct profile *profile)
{
    for (size_t i = 0; i < wished->profile_count; i++)
        if (profile_equal(wished->profiles[i], profile))
            return wished->profiles[i];
    struct profile *copy = xcalloc(1, sizeof *copy);
    *copy = *profile;
    wished->profiles = grow(wished->profiles, wished->profile_count, &wished->profile_capacity,
                            sizeof(struct profile *));
    wished->profiles[wished->profile_count++] = copy;
    return copy;
}

/* Device "node-a/0" belongs to node "node-a". */
static bool is_of(const struct planner_device *device, const char *node)
{
    size_t length = strlen(node);
    return strncmp(device->name, node, length) == 0 && device->name[length] == '/';
}

int wished_link(struct wished *wished, const char *what, double factor, struct error *err)
{
    bool host = strcmp(what, "host") == 0, all = host || strcmp(what, "network") == 0, any = false;
    if (!(factor > 0))
        return error_set(err, -EINVAL, "link '%s': %g times as fast is no speed; write network=2x",
                         what, factor);
    for (size_t i = 0; i < wished->count; i++) {
        struct planner_device *device = &wished->devices[i];
        if (!all && !is_of(device, what))
            continue;
        struct profile profile = *device->profile;
        struct hardware_link *link = host ? &profile.host : &profile.network;
        link->seconds_per_byte /= factor;
        device->profile = wished_share(wished, &profile);
        any = true;
    }
    return any ? 0
               : error_set(err, -EINVAL,
                           "link '%s' is neither host nor network, nor the name of a node", what);
}

void wished_memory(struct wished *wished, uint64_t bytes)
{
    for (size_t i = 0; i < wished->count; i++)
        wished->devices[i].memory_bytes = bytes;
}

int wish_pin(struct job_plan *plan, const char *text, struct error *err)
{
    int64_t zero = -1; /* set by a zero pin, which forbids the other values */
    const struct {
        const char *name;
        int64_t *to;
        int64_t least, most;
    } pins[] = {
        {"dp", &plan->pin.dp, 1, PLAN_RANKS_MAX},
        {"tp", &plan->pin.tp, 1, PLAN_RANKS_MAX},
        {"pp", &plan->pin.pp, 1, PLAN_RANKS_MAX},
        {"micro_batches", &plan->pin.micro_batches, 1, PLAN_MICRO_BATCHES_MAX},
        {"zero", &zero, 0, 3},
    };
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < sizeof pins / sizeof *pins; i++) {
        char *end;
        if (strlen(pins[i].name) != length || strncmp(pins[i].name, text, length) != 0)
            continue;
        long long value = text[length] ? strtoll(text + length + 1, &end, 10) : -1;
        if (value < pins[i].least || value > pins[i].most || end == text + length + 1 || *end)
            return error_set(err, -EINVAL, "'%s': write %s=N, %lld to %lld", text, pins[i].name,
                             (long long)pins[i].least, (long long)pins[i].most);
        *pins[i].to = value;
        if (zero >= 0)
            plan->forbid.zero = 0xfu & ~(1u << zero);
        return 0;
    }
    return error_set(err, -EINVAL,
                     "'%s' is nothing that can be pinned: write dp=N, tp=N, pp=N, micro_batches=N "
                     "or zero=N",
                     text);
}

/* profile.c - prices instructions by a profile, and converts profiles to and from JSON. */
#include "common/profile/profile.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

struct profile profile_analytic(double flops_per_s, double bytes_per_s, double share,
                                struct hardware_link host, struct hardware_link network)
{
    return (struct profile){
        .seconds_per_flop = 1 / (flops_per_s * share),
        .seconds_per_byte = 1 / (bytes_per_s * share),
        .overhead_s = 5e-6,
        .host = host,
        .network = network,
        .overlap = PROFILE_OVERLAP,
    };
}

/* The rate of an operation with this element type, or else in f32; NULL when it has neither. */
static const struct profile_rate *find_rate(const struct profile *profile, const char *operation,
                                            enum element element)
{
    const struct profile_rate *found = NULL;
    for (size_t i = 0; i < profile->rate_count; i++) {
        const struct profile_rate *rate = &profile->rates[i];
        if (strcmp(rate->operation, operation) != 0)
            continue;
        if (rate->element == element)
            return rate;
        if (rate->element == ELEMENT_F32)
            found = rate;
    }
    return found;
}

static const struct profile_rate *rate_of(const struct profile *profile,
                                          const struct program *program,
                                          const struct instruction *instruction)
{
    const struct graph *graph = program->graph;
    const struct node *node = &graph->nodes[instruction->kernel.node];
    enum element element = element_of_size(graph->element_bytes);
    const struct profile_rate *rate = find_rate(profile, node->name, element);
    return rate ? rate : find_rate(profile, node->operation->name, element);
}

static double flop_seconds(const struct profile *profile, const struct program *program)
{
    bool narrow = element_of_size(program->graph->element_bytes) == ELEMENT_BF16;
    return narrow && profile->seconds_per_flop_bf16 > 0 ? profile->seconds_per_flop_bf16
                                                        : profile->seconds_per_flop;
}

static double rate_seconds(const struct profile_rate *rate, enum direction direction, double flops,
                           double bytes)
{
    return rate->fixed_s[direction] + flops * rate->seconds_per_flop[direction] +
           bytes * rate->seconds_per_byte[direction];
}

/* The measured rate if the operation has one; otherwise the roofline: the longer of the times for
 * arithmetic and for memory traffic. */
static double kernel_seconds(const struct profile *profile, const struct program *program,
                             const struct instruction *instruction)
{
    const struct profile_rate *rate = rate_of(profile, program, instruction);
    double flops = instruction_flops(program, instruction);
    if (rate)
        return rate_seconds(rate, instruction->kernel.direction, flops,
                            instruction_bytes(program, instruction));
    return profile->overhead_s +
           fmax(flops * flop_seconds(profile, program),
                instruction_bytes(program, instruction) * profile->seconds_per_byte);
}

double profile_fixed_seconds(const struct profile *profile, const struct program *program,
                             const struct instruction *instruction)
{
    if (instruction->kind != INSTRUCTION_KERNEL)
        return 0;
    const struct profile_rate *rate = rate_of(profile, program, instruction);
    return rate ? rate->fixed_s[instruction->kernel.direction] : profile->overhead_s;
}

/* The steps from a leaf of a binary tree of so many ranks to its root. */
static int tree_height(int ranks)
{
    int height = 0;
    while (1 << height < ranks)
        height++;
    return height;
}

/* latency x steps + seconds_per_byte x bytes, as in Thakur et al. 2005. Among n ranks a ring takes
 * n - 1 steps, for an all-reduce twice as many. Libraries sum little by trees instead: up and down,
 * with everything sent on each way (Sanders et al. 2009; NCCL since 2.4). */
static double collective_seconds(const struct hardware_link *link, const struct program *program,
                                 const struct instruction *instruction)
{
    int ranks = program->groups[instruction->collective.group].count;
    double bytes = instruction_most_bytes(program, instruction);
    double ring = link->latency_s * (ranks - 1) + link->seconds_per_byte * bytes;
    if (instruction->collective.kind != COLLECTIVE_ALL_REDUCE)
        return ring;
    double whole = bytes * ranks / (ranks - 1); /* a ring sends (n - 1) / n of it on either way */
    ring += link->latency_s * (ranks - 1);
    return fmin(ring, 2 * link->latency_s * tree_height(ranks) + link->seconds_per_byte * whole);
}

void profile_slow_down(struct profile *profile, double factor)
{
    for (size_t i = 0; i < profile->rate_count; i++)
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            profile->rates[i].fixed_s[direction] *= factor;
            profile->rates[i].seconds_per_flop[direction] *= factor;
            profile->rates[i].seconds_per_byte[direction] *= factor;
        }
    profile->seconds_per_flop *= factor;
    profile->seconds_per_flop_bf16 *= factor;
    profile->seconds_per_byte *= factor;
    profile->overhead_s *= factor;
}

double profile_seconds(const struct profile *profile, const struct hardware_link *link,
                       const struct program *program, const struct instruction *instruction)
{
    switch (instruction->kind) {
    case INSTRUCTION_KERNEL:
        return kernel_seconds(profile, program, instruction);
    case INSTRUCTION_COLLECTIVE:
        return collective_seconds(link, program, instruction);
    case INSTRUCTION_RECEIVE:
        return link->latency_s + link->seconds_per_byte * instruction_bytes(program, instruction);
    case INSTRUCTION_SEND:
    case INSTRUCTION_WAIT:
        return 0;
    default:
        return profile->overhead_s +
               profile->seconds_per_byte * instruction_bytes(program, instruction);
    }
}

static json_t *encode_link(const struct hardware_link *link)
{
    return json_pack("{s:f, s:f}", "latency_s", link->latency_s, "seconds_per_byte",
                     link->seconds_per_byte);
}

static json_t *encode_rate(const struct profile_rate *rate, enum direction direction)
{
    return json_pack("[f, f, f]", rate->fixed_s[direction], rate->seconds_per_flop[direction],
                     rate->seconds_per_byte[direction]);
}

static json_t *encode_rates(const struct profile *profile, enum element element)
{
    json_t *rates = json_object();
    for (size_t i = 0; i < profile->rate_count; i++) {
        const struct profile_rate *rate = &profile->rates[i];
        if (rate->element == element)
            json_object_set_new(
                rates, rate->operation,
                json_pack("[o, o]", encode_rate(rate, FORWARD), encode_rate(rate, BACKWARD)));
    }
    return rates;
}

char *profile_encode(const struct profile *profile)
{
    json_t *root =
        json_pack("{s:o, s:f, s:f, s:f, s:o, s:o, s:f}", "rates",
                  encode_rates(profile, ELEMENT_F32), "seconds_per_flop", profile->seconds_per_flop,
                  "seconds_per_byte", profile->seconds_per_byte, "overhead_s", profile->overhead_s,
                  "host", encode_link(&profile->host), "network", encode_link(&profile->network),
                  "overlap", profile->overlap);
    if (profile->network_cards > 0)
        json_object_set_new(root, "network_cards", json_real(profile->network_cards));
    if (profile->seconds_per_flop_bf16 > 0)
        json_object_set_new(root, "bf16",
                            json_pack("{s:o, s:f}", "rates", encode_rates(profile, ELEMENT_BF16),
                                      "seconds_per_flop", profile->seconds_per_flop_bf16));
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(root);
    return text;
}

/* The time per byte may be missing, as profiles of earlier versions do not have it. */
static bool decode_rate(json_t *value, enum direction direction, struct profile_rate *rate)
{
    double *fixed_s = &rate->fixed_s[direction], *flop_s = &rate->seconds_per_flop[direction],
           *byte_s = &rate->seconds_per_byte[direction];
    json_t *of = json_array_get(value, (size_t)direction);
    *byte_s = 0;
    if (json_unpack(of, json_array_size(of) == 2 ? "[F, F!]" : "[F, F, F!]", fixed_s, flop_s,
                    byte_s) < 0)
        return false;
    return *fixed_s >= 0 && *flop_s >= 0 && *byte_s >= 0;
}

static int decode_rates(json_t *rates, enum element element, struct profile *out, struct error *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(rates))
        return error_set(err, -EINVAL, "profile: rates has to be an object, by operation");
    json_object_foreach(rates, name, value)
    {
        if (out->rate_count == PROFILE_RATES_MAX || strlen(name) >= PROFILE_NAME_SIZE)
            return error_set(err, -EINVAL, "profile: too many or too long names of operations");
        struct profile_rate *rate = &out->rates[out->rate_count];
        if (json_array_size(value) != DIRECTIONS || !decode_rate(value, FORWARD, rate) ||
            !decode_rate(value, BACKWARD, rate))
            return error_set(err, -EINVAL,
                             "profile: rates.%s is not a fixed time, a time per operation and a "
                             "time per byte for forward and for backward, none negative",
                             name);
        rate->element = element;
        strcpy(rate->operation, name);
        out->rate_count++;
    }
    return 0;
}

static int check_members(const struct profile *profile, struct error *err)
{
    const struct {
        const char *name;
        double value;
    } members[] = {{"seconds_per_flop", profile->seconds_per_flop},
                   {"bf16.seconds_per_flop", profile->seconds_per_flop_bf16},
                   {"seconds_per_byte", profile->seconds_per_byte},
                   {"overhead_s", profile->overhead_s},
                   {"host.latency_s", profile->host.latency_s},
                   {"host.seconds_per_byte", profile->host.seconds_per_byte},
                   {"network.latency_s", profile->network.latency_s},
                   {"network.seconds_per_byte", profile->network.seconds_per_byte},
                   {"network_cards", profile->network_cards}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!(members[i].value >= 0))
            return error_set(err, -EINVAL, "profile: %s is %g; it cannot be negative",
                             members[i].name, members[i].value);
    if (!(profile->overlap >= 1 && profile->overlap <= PROFILE_OVERLAP_MAX))
        return error_set(err, -EINVAL, "profile: overlap is %g; a factor from 1 to %d is right",
                         profile->overlap, PROFILE_OVERLAP_MAX);
    return 0;
}

int profile_decode(const char *text, struct profile *out, struct error *err)
{
    json_error_t where;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where), *rates = NULL, *narrow = NULL;
    struct profile profile = {.overlap = PROFILE_OVERLAP};
    if (!root)
        return error_set(err, -EINVAL, "profile: %s", where.text);
    int rc = json_unpack_ex(
        root, &where, 0, "{s:o, s:F, s:F, s:F, s:{s:F, s:F}, s:{s:F, s:F}, s?F, s?F, s?{s:o, s:F}}",
        "rates", &rates, "seconds_per_flop", &profile.seconds_per_flop, "seconds_per_byte",
        &profile.seconds_per_byte, "overhead_s", &profile.overhead_s, "host", "latency_s",
        &profile.host.latency_s, "seconds_per_byte", &profile.host.seconds_per_byte, "network",
        "latency_s", &profile.network.latency_s, "seconds_per_byte",
        &profile.network.seconds_per_byte, "network_cards", &profile.network_cards, "overlap",
        &profile.overlap, "bf16", "rates", &narrow, "seconds_per_flop",
        &profile.seconds_per_flop_bf16);
    if (rc < 0)
        rc = error_set(err, -EINVAL, "profile: %s", where.text);
    else
        rc = decode_rates(rates, ELEMENT_F32, &profile, err);
    if (rc == 0 && narrow)
        rc = decode_rates(narrow, ELEMENT_BF16, &profile, err);
    json_decref(root);
    if (rc == 0)
        rc = check_members(&profile, err);
    if (rc == 0)
        *out = profile;
    return rc;
}

static bool same_rate(const struct profile_rate *a, const struct profile_rate *b)
{
    bool same = strcmp(a->operation, b->operation) == 0 && a->element == b->element;
    for (int direction = 0; direction < DIRECTIONS; direction++)
        same = same && a->fixed_s[direction] == b->fixed_s[direction] &&
               a->seconds_per_flop[direction] == b->seconds_per_flop[direction] &&
               a->seconds_per_byte[direction] == b->seconds_per_byte[direction];
    return same;
}

static bool same_link(const struct hardware_link *a, const struct hardware_link *b)
{
    return a->latency_s == b->latency_s && a->seconds_per_byte == b->seconds_per_byte;
}

bool profile_equal(const struct profile *a, const struct profile *b)
{
    bool same = a->rate_count == b->rate_count && a->seconds_per_flop == b->seconds_per_flop &&
                a->seconds_per_flop_bf16 == b->seconds_per_flop_bf16 &&
                a->seconds_per_byte == b->seconds_per_byte && a->overhead_s == b->overhead_s &&
                same_link(&a->host, &b->host) && same_link(&a->network, &b->network) &&
                a->network_cards == b->network_cards && a->overlap == b->overlap;
    for (size_t i = 0; same && i < a->rate_count; i++)
        same = same_rate(&a->rates[i], &b->rates[i]);
    return same;
}

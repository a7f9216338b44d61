/* site.c - decides when the devices of two stages are alike, and which ranks of a stage represent
 * the others. */
#include "coordinator/planner/costs/site.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/request.h"

#include <stdlib.h>
#include <string.h>

#define FEW_DEVICES SITE_RANKS_MAX
#define FEW_RANKS 4
#define UNLIKE_SHARE 0.02

/* Two adjacent sites, by their kinds and the host that they have in common. Devices of one host are
 * consecutive, so that can only be the host that the first site ends with and the second begins
 * with. */
struct site_pair {
    int kinds[2];
    int at_end, at_begin; /* devices of each on that host */
};

void sites_finish(struct sites *sites)
{
    for (size_t i = 0; i < sites->count; i++) {
        free(sites->items[i]->weights);
        free(sites->items[i]);
    }
    free(sites->items);
    free(sites->pairs);
}

static bool mesh_equal(const struct mesh *a, const struct mesh *b)
{
    if (a->axes != b->axes || memcmp(a->size, b->size, (size_t)a->axes * sizeof *a->size) != 0)
        return false;
    for (int rank = 0; rank < mesh_count(a); rank++)
        if ((a->weights ? a->weights[rank] : 1) != (b->weights ? b->weights[rank] : 1))
            return false;
    return true;
}

static bool one_host(const struct sites *sites, int a, int b)
{
    return hosts_same(&sites->request->devices[a], &sites->request->devices[b]);
}

/* Devices of one host are consecutive, so it is enough to compare neighbours. */
static bool sites_alike(const struct sites *sites, const struct site *a, const struct site *b)
{
    const struct planner_device *devices = sites->request->devices;
    if (!mesh_equal(&a->mesh, &b->mesh) || a->ranks != b->ranks)
        return false;
    for (int rank = 0; rank < mesh_count(&a->mesh); rank++) {
        if (devices[a->first + rank].profile != devices[b->first + rank].profile)
            return false;
        if (rank > 0 && one_host(sites, a->first + rank - 1, a->first + rank) !=
                            one_host(sites, b->first + rank - 1, b->first + rank))
            return false;
    }
    return true;
}

/* Add the rank if it is missing and there is room. Returns the new count. */
static int add_rank(int ranks[SITE_RANKS_MAX], int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank)
            return count;
    if (count < SITE_RANKS_MAX)
        ranks[count++] = rank;
    return count;
}

static void site_represent(struct site *site, int rank)
{
    site->representative_count = add_rank(site->representatives, site->representative_count, rank);
}

static void choose_representatives(const struct sites *sites, struct site *site)
{
    const struct planner_device *devices = &sites->request->devices[site->first];
    int count = mesh_count(&site->mesh), largest = 0;
    site_represent(site, 0);
    site_represent(site, count - 1);
    for (int rank = 0; rank < count; rank++) {
        int other = 0;
        while (devices[other].profile != devices[rank].profile)
            other++;
        if (other == rank)
            site_represent(site, rank);
        if (site->weights && site->weights[rank] > site->weights[largest])
            largest = rank;
    }
    site_represent(site, largest);
    site->even = !site->weights;
    for (int rank = 1; rank < count; rank++)
        site->even = site->even && devices[rank].profile == devices[0].profile;
    site->alike = site->even && hosts_share(devices, count) > 0;
}

/* Memory of the rank's device, adjusted as if its libraries occupied library_bytes of the site. */
static uint64_t memory_of(const struct sites *sites, const struct site *site, int rank)
{
    uint64_t memory = planner_memory_limit(sites->request, site->first + rank);
    if (sites->memory_scale > 0)
        memory = (uint64_t)((double)memory * sites->memory_scale);
    return memory + site->library_bytes - sites->request->devices[site->first + rank].library_bytes;
}

static void set_memory(const struct sites *sites, struct site *site)
{
    site->memory_bytes = UINT64_MAX;
    for (int rank = 0; rank < mesh_count(&site->mesh); rank++) {
        uint64_t memory = memory_of(sites, site, rank);
        if (memory <= site->memory_bytes)
            site->tight = site->ranks > 1 ? rank : 0;
        site->memory_bytes = memory < site->memory_bytes ? memory : site->memory_bytes;
        if (site->ranks > 1)
            site->limits[rank] = memory;
    }
    if (site->ranks == 1)
        site->limits[0] = site->memory_bytes;
}

/* Whether the memory of the ranks differs so much that it matters who needs most. */
static bool unlike_memory(const struct sites *sites, const struct site *site, int count)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (int rank = 0; rank < count; rank++) {
        uint64_t memory = memory_of(sites, site, rank);
        least = memory < least ? memory : least;
        most = memory > most ? memory : most;
    }
    return (double)least < (double)most * (1 - UNLIKE_SHARE);
}

/* Decide whether the bytes of ranks are told apart. Every such rank costs one program of each part
 * that is not the same on all. So they are told apart if all of them are representatives anyway;
 * and with few devices, whose plans may all be compared, also if there are hardly more ranks, or if
 * their memory or their shares are unlike. */
static void tell_apart(const struct sites *sites, struct site *site)
{
    int count = mesh_count(&site->mesh), known = site->representative_count;
    for (int rank = 0; rank < count; rank++) {
        uint64_t taken = sites->request->devices[site->first + rank].library_bytes;
        site->library_bytes = taken > site->library_bytes ? taken : site->library_bytes;
    }
    bool few = sites->request->device_count <= FEW_DEVICES;
    bool unlike = site->weights || unlike_memory(sites, site, count);
    bool apart = count == known || (few && (unlike || count <= FEW_RANKS));
    site->ranks = apart ? count : 1;
    for (int rank = 0; rank < site->ranks; rank++)
        known = add_rank(site->representatives, known, rank);
}

void sites_scale(struct sites *sites, double scale)
{
    sites->memory_scale = scale;
    for (size_t i = 0; i < sites->count; i++)
        set_memory(sites, sites->items[i]);
}

const struct site *sites_add(struct sites *sites, int first, const struct mesh *mesh)
{
    for (size_t i = 0; i < sites->count; i++)
        if (sites->items[i]->first == first && mesh_equal(&sites->items[i]->mesh, mesh))
            return sites->items[i];
    struct site *site = xcalloc(1, sizeof *site);
    int count = mesh_count(mesh);
    site->first = first;
    site->mesh = *mesh;
    if (mesh->weights) {
        site->weights = xcalloc((size_t)count, sizeof *site->weights);
        memcpy(site->weights, mesh->weights, (size_t)count * sizeof *site->weights);
        site->mesh.weights = site->weights;
    }
    choose_representatives(sites, site);
    tell_apart(sites, site);
    set_memory(sites, site);
    site->kind = -1;
    for (size_t i = 0; i < sites->count && site->kind < 0; i++)
        if (sites_alike(sites, sites->items[i], site))
            site->kind = sites->items[i]->kind;
    if (site->kind < 0)
        site->kind = sites->kinds++;
    sites->items = grow(sites->items, sites->count, &sites->capacity, sizeof(struct site *));
    sites->items[sites->count++] = site;
    return site;
}

int sites_pair(struct sites *sites, const struct site *a, const struct site *b)
{
    int last = a->first + mesh_count(&a->mesh) - 1, end = b->first + mesh_count(&b->mesh);
    struct site_pair pair = {.kinds = {a->kind, b->kind}};
    for (int i = last; i >= a->first && one_host(sites, i, b->first); i--)
        pair.at_end++;
    for (int i = b->first; i < end && one_host(sites, i, last); i++)
        pair.at_begin++;
    for (size_t i = 0; i < sites->pair_count; i++)
        if (memcmp(&sites->pairs[i], &pair, sizeof pair) == 0)
            return (int)i;
    sites->pairs =
        grow(sites->pairs, sites->pair_count, &sites->pair_capacity, sizeof *sites->pairs);
    sites->pairs[sites->pair_count] = pair;
    return (int)sites->pair_count++;
}

/* holding.c - one holding in the file. Its memory ends at a guard page, like a region of the
 * arena. */
#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/estate/estate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct holding {
    struct estate *estate;
    struct record *record;
    char *mapping;
    size_t mapped;
    struct share *shares;
    float *journal; /* old master and moments of the piece in progress */
    char *memory;
};

static int map_stretch(struct holding *holding, struct error *err)
{
    const struct record *record = holding->record;
    uint64_t stretch = estate_stretch(record);
    size_t mapped = stretch + (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size[32];
    if (at == MAP_FAILED)
        return error_set(err, -ENOBUFS, "cannot reserve memory: state %s",
                         units_print_bytes(size, sizeof size, (double)record->bytes));
    holding->mapping = at;
    holding->mapped = mapped;
    if (mmap(at, stretch, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, holding->estate->fd,
             (off_t)record->offset) == MAP_FAILED)
        return error_set(err, -ENOBUFS, "cannot map memory: state %s",
                         units_print_bytes(size, sizeof size, (double)record->bytes));
    holding->shares = (struct share *)(void *)at;
    holding->journal =
        (float *)(void *)(at + estate_pages(record->share_count * sizeof *holding->shares));
    holding->memory = at + stretch - record->bytes;
    return 0;
}

int holding_open(struct estate *estate, size_t index, struct holding **out, struct error *err)
{
    struct holding *holding = xcalloc(1, sizeof *holding);
    holding->estate = estate;
    holding->record = &estate->page->records[index];
    estate->holdings[index] = holding;
    int rc = map_stretch(holding, err);
    if (rc < 0)
        holding_release(holding);
    else
        *out = holding;
    return rc;
}

int holding_create(struct estate *estate, enum holding_kind kind, uint64_t bytes,
                   size_t share_count, struct holding **out, struct error *err)
{
    size_t index = 0;
    while (index < HOLDINGS_MAX && estate->holdings[index])
        index++;
    if (index == HOLDINGS_MAX)
        return error_set(err, -EBUSY, "%d states and copies are kept already", HOLDINGS_MAX);
    struct record *record = &estate->page->records[index];
    *record = (struct record){.kind = kind, .bytes = bytes, .share_count = share_count};
    int rc = estate_extend(estate, record, err);
    return rc == 0 ? holding_open(estate, index, out, err) : rc;
}

void holding_close(struct holding *holding)
{
    struct estate *estate = holding->estate;
    if (holding->mapping)
        munmap(holding->mapping, holding->mapped);
    estate->holdings[holding->record - estate->page->records] = NULL;
    free(holding);
}

void holding_release(struct holding *holding)
{
    if (!holding)
        return;
    struct record *record = holding->record;
    atomic_store(&record->published, false);
    estate_punch(holding->estate, record);
    *record = (struct record){0};
    holding_close(holding);
}

char *holding_memory(const struct holding *holding)
{
    return holding->memory;
}

/* Write the standing beside the valid one, then switch over, so that a process killed in between
 * leaves a whole one. */
static void stand(struct holding *holding, const struct standing *standing)
{
    struct record *record = holding->record;
    unsigned other = 1 - atomic_load(&record->newest);
    record->standings[other] = *standing;
    atomic_store(&record->newest, other);
}

void holding_describe(struct holding *holding, const struct share *shares, uint64_t ran_in)
{
    struct record *record = holding->record;
    memcpy(holding->shares, shares, record->share_count * sizeof *shares);
    record->ran_in = ran_in;
}

void holding_publish(struct holding *holding, const struct standing *standing)
{
    stand(holding, standing);
    atomic_store(&holding->record->published, true);
}

/* The fence keeps the compiler from moving later writes to the memory before the withdrawal. */
void holding_withdraw(struct holding *holding)
{
    atomic_store(&holding->record->published, false);
    atomic_signal_fence(memory_order_seq_cst);
}

void holding_offer(struct holding *holding)
{
    atomic_store(&holding->record->published, true);
}

bool holding_published(const struct holding *holding)
{
    return atomic_load(&holding->record->published);
}

enum holding_kind holding_kind(const struct holding *holding)
{
    return holding->record->kind;
}

const struct share *holding_shares(const struct holding *holding, size_t *count)
{
    *count = holding->record->share_count;
    return holding->shares;
}

uint64_t holding_ran_in(const struct holding *holding)
{
    return holding->record->ran_in;
}

const struct standing *holding_standing(const struct holding *holding)
{
    return &holding->record->standings[atomic_load(&holding->record->newest)];
}

void holding_reach(struct holding *holding, uint32_t instruction, uint32_t count)
{
    atomic_store_explicit(&holding->record->reached, instruction, memory_order_relaxed);
    atomic_store_explicit(&holding->record->instructions, count, memory_order_relaxed);
}

/* ---- the stages of a step ---- */

void holding_arm(struct holding *holding)
{
    struct standing standing = *holding_standing(holding);
    standing.armed = true;
    stand(holding, &standing);
}

void holding_apply(struct holding *holding, const float metrics[METRICS])
{
    struct standing standing = *holding_standing(holding);
    standing.applying = true;
    memcpy(standing.next, metrics, sizeof standing.next);
    atomic_store(&holding->record->begun, 0);
    atomic_store(&holding->record->ended, 0);
    stand(holding, &standing);
}

void holding_applied(struct holding *holding)
{
    const struct standing *before = holding_standing(holding);
    struct standing after = {
        .epoch = holding_ran_in(holding), .step = before->step + 1, .has_metrics = true};
    memcpy(after.metrics, before->next, sizeof after.metrics);
    stand(holding, &after);
}

struct piece_place {
    float *parts[3]; /* master and both moments */
    size_t count;
};

static struct piece_place place_of(const struct holding *holding, size_t share, size_t piece)
{
    const struct share *s = &holding->shares[share];
    const uint64_t parts[3] = {s->master, s->first, s->second};
    size_t first = piece * PIECE_ELEMENTS, left = (size_t)box_count(&s->box) - first;
    struct piece_place place = {.count = left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS};
    for (int part = 0; part < 3; part++)
        place.parts[part] = (float *)(void *)(holding->memory + parts[part]) + first;
    return place;
}

static uint64_t number_of(size_t share, size_t piece)
{
    return ((uint64_t)share << 32) + piece + 1;
}

/* A piece that was begun but not ended is restored from the journal; any other is saved to it. */
bool holding_begin_piece(struct holding *holding, size_t share, size_t piece)
{
    struct record *record = holding->record;
    uint64_t number = number_of(share, piece);
    struct piece_place place = place_of(holding, share, piece);
    if (number <= atomic_load(&record->ended))
        return false;
    bool again = number == atomic_load(&record->begun);
    for (int part = 0; part < 3; part++) {
        float *saved = holding->journal + (size_t)part * PIECE_ELEMENTS;
        memcpy(again ? place.parts[part] : saved, again ? saved : place.parts[part],
               place.count * sizeof *saved);
    }
    atomic_store(&record->begun, number);
    return true;
}

void holding_end_piece(struct holding *holding, size_t share, size_t piece)
{
    atomic_store(&holding->record->ended, number_of(share, piece));
}

void holding_end_share(struct holding *holding, size_t share)
{
    atomic_store(&holding->record->ended, number_of(share + 1, 0) - 1);
}

/* estate.c - the file: a head that lists the holdings, followed by a stretch for each. A stretch is
 * never reused, so the file grows and has holes where holdings were released. The memory of a
 * holding ends at a guard page, like a region of the arena. */
#include "worker/estate/estate.h"

#include "common/base/memory.h"
#include "common/base/units.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x6573746174650003) /* includes the version of the layout */
#define JOURNAL_BYTES ((size_t)3 * PIECE_ELEMENTS * sizeof(float))

static_assert(HOLDINGS_MAX == EPOCHS_MAX * (1 + COPIES_SLOTS), "a state and its copies");

/* One holding. The number of a piece is (share << 32) + piece + 1, so that numbers grow in the
 * order in which pieces are changed. */
struct record {
    atomic_bool published;
    enum holding_kind kind;
    atomic_uint newest; /* index of the valid standing */
    uint64_t offset;    /* of its stretch, in the file */
    uint64_t bytes;     /* of its memory; 0, with share_count 0: the record is unused */
    uint64_t share_count, ran_in;
    struct standing standings[2];
    atomic_uint_fast64_t begun, ended; /* numbers of the last pieces begun and ended */
};

/* The head of the file, in as many pages as it takes. */
struct page {
    uint64_t magic, record_bytes;
    struct record records[HOLDINGS_MAX];
};

struct estate {
    int fd;
    struct page *page;
    struct holding *holdings[HOLDINGS_MAX]; /* the open holding of each record; not owned */
};

struct holding {
    struct estate *estate;
    struct record *record;
    char *mapping;
    size_t mapped;
    struct share *shares;
    float *journal; /* old master and moments of the piece in progress */
    char *memory;
};

/* Rounds up to whole pages. */
static uint64_t estate_pages(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/* A stretch has the shares, the journal and the memory, each in whole pages. */
static uint64_t estate_stretch(const struct record *record)
{
    return estate_pages(record->share_count * sizeof(struct share)) + estate_pages(JOURNAL_BYTES) +
           estate_pages(record->bytes);
}

/* Append a stretch for this record to the file, and set its offset. -ENOBUFS. */
static int estate_extend(struct estate *estate, struct record *record, struct error *err)
{
    struct stat stat;
    char size[32];
    if (record->bytes > INT64_MAX / 2 || fstat(estate->fd, &stat) < 0 ||
        ftruncate(estate->fd, stat.st_size + (off_t)estate_stretch(record)) < 0)
        return error_set(err, -ENOBUFS, "cannot reserve memory: state %s",
                         units_print_bytes(size, sizeof size, (double)record->bytes));
    record->offset = (uint64_t)stat.st_size;
    return 0;
}

/* Free the memory of a record's stretch. */
static void estate_punch(struct estate *estate, const struct record *record)
{
    fallocate(estate->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)record->offset,
              (off_t)estate_stretch(record));
}

static int map_page(struct estate *estate, struct error *err)
{
    struct stat stat;
    uint64_t bytes = estate_pages(sizeof *estate->page);
    if (fstat(estate->fd, &stat) < 0 ||
        ((uint64_t)stat.st_size < bytes && ftruncate(estate->fd, (off_t)bytes) < 0))
        return error_set(err, -errno, "the file of the state: %s", strerror(errno));
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, estate->fd, 0);
    if (at == MAP_FAILED)
        return error_set(err, -errno, "map the file of the state: %s", strerror(errno));
    estate->page = at;
    return 0;
}

/* Start afresh if the file is of another version, and discard holdings that were never
 * published. */
static void read_page(struct estate *estate)
{
    struct page *page = estate->page;
    if (page->magic != MAGIC || page->record_bytes != sizeof *page->records) {
        ftruncate(estate->fd, (off_t)estate_pages(sizeof *page));
        *page = (struct page){.record_bytes = sizeof *page->records};
        page->magic = MAGIC;
    }
    for (size_t i = 0; i < HOLDINGS_MAX; i++) {
        struct record *record = &page->records[i];
        if (atomic_load(&record->published))
            continue;
        if (record->offset > 0)
            estate_punch(estate, record);
        *record = (struct record){0};
    }
}

int estate_open(int fd, struct estate **out, struct error *err)
{
    struct estate *estate = xcalloc(1, sizeof *estate);
    estate->fd = fd >= 0 ? fd : memfd_create("gimbal-state", MFD_CLOEXEC);
    int rc = estate->fd < 0 ? error_set(err, -errno, "a file for the state: %s", strerror(errno))
                            : map_page(estate, err);
    if (rc < 0) {
        estate_close(estate);
        return rc;
    }
    read_page(estate);
    *out = estate;
    return 0;
}

void estate_close(struct estate *estate)
{
    if (!estate)
        return;
    if (estate->page)
        munmap(estate->page, estate_pages(sizeof *estate->page));
    if (estate->fd >= 0)
        close(estate->fd);
    free(estate);
}

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

/* Map the holding of record `index`. */
static int holding_open(struct estate *estate, size_t index, struct holding **out,
                        struct error *err)
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

int estate_take(struct estate *estate, struct holding *out[HOLDINGS_MAX], struct error *err)
{
    int count = 0;
    for (size_t i = 0; i < HOLDINGS_MAX; i++) {
        struct holding *holding;
        if (!atomic_load(&estate->page->records[i].published))
            continue;
        int rc = holding_open(estate, i, &holding, err), at = count++;
        if (rc < 0) {
            while (at-- > 0)
                holding_release(out[at]);
            return rc;
        }
        for (; at > 0 && holding_ran_in(holding) < holding_ran_in(out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = holding;
    }
    return count;
}

char *holding_memory(const struct holding *holding)
{
    return holding->memory;
}

float *holding_at(const struct holding *holding, uint64_t bytes)
{
    return (float *)(void *)(holding->memory + bytes);
}

/* Write the standing beside the valid one, then switch over, so that a process killed in between
 * leaves a whole one. */
static void holding_stand(struct holding *holding, const struct standing *standing)
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
    holding_stand(holding, standing);
    atomic_store(&holding->record->published, true);
}

/* The fence keeps the compiler from moving later writes to the memory before the withdrawal. */
void holding_withdraw(struct holding *holding)
{
    atomic_store(&holding->record->published, false);
    atomic_signal_fence(memory_order_seq_cst);
}

void holding_republish(struct holding *holding)
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

/* ---- the stages of a step ---- */

void holding_arm(struct holding *holding)
{
    struct standing standing = *holding_standing(holding);
    standing.armed = true;
    holding_stand(holding, &standing);
}

void holding_apply(struct holding *holding, const float metrics[METRICS])
{
    struct standing standing = *holding_standing(holding);
    standing.applying = true;
    memcpy(standing.next, metrics, sizeof standing.next);
    atomic_store(&holding->record->begun, 0);
    atomic_store(&holding->record->ended, 0);
    holding_stand(holding, &standing);
}

void holding_applied(struct holding *holding)
{
    const struct standing *before = holding_standing(holding);
    struct standing after = {
        .epoch = holding_ran_in(holding), .step = before->step + 1, .has_metrics = true};
    memcpy(after.metrics, before->next, sizeof after.metrics);
    holding_stand(holding, &after);
}

struct piece_place {
    float *parts[3]; /* master and both moments */
    size_t count;
};

static struct piece_place piece_find(const struct holding *holding, size_t share, size_t piece)
{
    const struct share *s = &holding->shares[share];
    const uint64_t parts[3] = {s->master, s->first, s->second};
    size_t first = piece * PIECE_ELEMENTS, left = (size_t)box_count(&s->box) - first;
    struct piece_place place = {.count = left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS};
    for (int part = 0; part < 3; part++)
        place.parts[part] = holding_at(holding, parts[part]) + first;
    return place;
}

static uint64_t piece_number(size_t share, size_t piece)
{
    return ((uint64_t)share << 32) + piece + 1;
}

/* A piece that was begun but not ended is restored from the journal; any other is saved to it. */
bool holding_begin_piece(struct holding *holding, size_t share, size_t piece)
{
    struct record *record = holding->record;
    uint64_t number = piece_number(share, piece);
    struct piece_place place = piece_find(holding, share, piece);
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
    atomic_store(&holding->record->ended, piece_number(share, piece));
}

void holding_end_share(struct holding *holding, size_t share)
{
    atomic_store(&holding->record->ended, piece_number(share + 1, 0) - 1);
}

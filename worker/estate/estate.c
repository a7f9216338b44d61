/* estate.c - the file: a head that lists the holdings, followed by a stretch for each. A stretch is
 * never reused, so the file grows and has holes where holdings were released. */
#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/estate/estate_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x6573746174650002) /* includes the version of the layout */
#define JOURNAL_BYTES ((size_t)3 * PIECE_ELEMENTS * sizeof(float))

static_assert(HOLDINGS_MAX == EPOCHS_MAX * (1 + COPIES_SLOTS), "a state and its copies");

uint64_t estate_pages(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/* A stretch has the shares, the journal and the memory, each in whole pages. */
uint64_t estate_stretch(const struct record *record)
{
    return estate_pages(record->share_count * sizeof(struct share)) + estate_pages(JOURNAL_BYTES) +
           estate_pages(record->bytes);
}

int estate_extend(struct estate *estate, struct record *record, struct error *err)
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

void estate_punch(struct estate *estate, const struct record *record)
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

int estate_watch(int fd, uint32_t *reached, uint32_t *count)
{
    struct page page;
    const struct record *newest = NULL;
    if (pread(fd, &page, sizeof page, 0) != sizeof page || page.magic != MAGIC ||
        page.record_bytes != sizeof *page.records)
        return -ENOENT;
    for (size_t i = 0; i < HOLDINGS_MAX; i++) {
        const struct record *record = &page.records[i];
        if (atomic_load(&record->published) && record->kind == HOLDING_STATE &&
            (!newest || record->ran_in > newest->ran_in))
            newest = record;
    }
    *count = newest ? (uint32_t)atomic_load(&newest->instructions) : 0;
    *reached = newest ? (uint32_t)atomic_load(&newest->reached) : 0;
    return *count > 0 ? 0 : -ENOENT;
}

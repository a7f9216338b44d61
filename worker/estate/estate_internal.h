/* estate_internal.h - the layout of the file, shared by estate.c and holding.c only. */
#ifndef WORKER_ESTATE_ESTATE_INTERNAL_H
#define WORKER_ESTATE_ESTATE_INTERNAL_H

#include "worker/estate/estate.h"

#include <stdatomic.h>
#include <stddef.h>

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
    /* The compute queue's current instruction, and the number of instructions: for those who watch
     * from outside. */
    atomic_uint_fast32_t reached, instructions;
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

/* Rounds up to whole pages. */
uint64_t estate_pages(uint64_t bytes);
/* Bytes of the file that a holding takes, from the record's offset on. */
uint64_t estate_stretch(const struct record *record);
/* Append a stretch for this record to the file, and set its offset. -ENOBUFS. */
int estate_extend(struct estate *estate, struct record *record, struct error *err);
/* Free the memory of a record's stretch. */
void estate_punch(struct estate *estate, const struct record *record);
/* Map the holding of record `index`. */
int holding_open(struct estate *estate, size_t index, struct holding **out, struct error *err);

#endif

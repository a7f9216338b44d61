/* estate_internal.h - what is in the file; estate.c and holding.c share it, and nobody else. */
#ifndef WORKER_ESTATE_ESTATE_INTERNAL_H
#define WORKER_ESTATE_ESTATE_INTERNAL_H

#include "worker/estate/estate.h"

#include <stdatomic.h>
#include <stddef.h>

/* Of a holding. A piece's number is its share's and its own in there, plus one. */
struct record {
    atomic_bool published;
    enum holding_kind kind;
    atomic_uint newest; /* of the standings */
    uint64_t offset;    /* of its stretch of the file */
    uint64_t bytes;     /* of its memory; with no share either: there is none */
    uint64_t share_count, ran_in;
    struct standing standings[2];
    atomic_uint_fast64_t begun, ended; /* numbers of pieces */
    /* The instruction of the program that computing is at, of so many: for who watches from
     * outside.
     */
    atomic_uint_fast32_t reached, instructions;
};

/* The first page, or more. */
struct page {
    uint64_t magic, record_bytes;
    struct record records[HOLDINGS_MAX];
};

struct estate {
    int fd;
    struct page *page;
    struct holding *holdings[HOLDINGS_MAX]; /* of each record that is in use; not owned */
};

uint64_t estate_pages(uint64_t bytes);
/* Of the file, from the record's offset on. */
uint64_t estate_stretch(const struct record *record);
/* Room for it behind all others. */
int estate_extend(struct estate *estate, struct record *record, struct error *err);
void estate_punch(struct estate *estate, const struct record *record);
/* A record as a holding, mapped. */
int holding_open(struct estate *estate, size_t index, struct holding **out, struct error *err);

#endif

/* embed.c - rows of the table. In backward every thread has its own columns and takes the rows in
 * order, so a token's sum has the same bits however many threads there are. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"

#include <string.h>

#define STRIP 512 /* columns whose sums are held at a time */

struct lookup {
    enum element element; /* element of rows */
    const int32_t *tokens;
    const struct view *table; /* (v, h), or its gradient */
    /* y (count, hidden), or its gradient */
    void *rows;
    int64_t count, hidden;
};

/* The row of this piece of the table that belongs to a token; -1: it is elsewhere. */
static int64_t embed_table_row(const struct lookup *lookup, int32_t token)
{
    const struct box *box = &lookup->table->box;
    return token >= box->low[0] && token < box->high[0] ? token - box->low[0] : -1;
}

static void embed_forward_range(const void *context, int64_t first, int64_t end)
{
    const struct lookup *lookup = context;
    size_t size = (size_t)lookup->hidden * element_size(lookup->element);
    for (int64_t row = first; row < end; row++) {
        int64_t from = embed_table_row(lookup, lookup->tokens[row]);
        void *y = from_number(lookup->rows, lookup->element, row * lookup->hidden);
        if (from >= 0)
            memcpy(y, from_number(lookup->table->data, lookup->element, from * lookup->hidden),
                   size);
        else
            memset(y, 0, size);
    }
}

/* Sum columns [first, first + count) of all rows from `row` on that have the same token. */
INLINED void add_alike(const struct lookup *lookup, int64_t row, int64_t first, int64_t count,
                       float *sum, enum element e)
{
    for (int64_t other = row; other < lookup->count; other++) {
        if (lookup->tokens[other] != lookup->tokens[row])
            continue;
        const void *dy = from_number(lookup->rows, e, other * lookup->hidden + first);
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            sum[i] += load(dy, e, i);
    }
}

static bool embed_seen_before(const int32_t *tokens, int64_t row)
{
    for (int64_t i = 0; i < row; i++)
        if (tokens[i] == tokens[row])
            return true;
    return false;
}

/* For a bf16 gradient: a token's rows are first summed in f32 and then rounded once, so they have
 * to be searched for. */
INLINED void add_tokens(const struct lookup *lookup, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = 0; row < lookup->count; row++) {
        int64_t to = embed_table_row(lookup, lookup->tokens[row]);
        if (to < 0 || embed_seen_before(lookup->tokens, row))
            continue;
        for (int64_t strip = first; strip < end; strip += STRIP) {
            int64_t width = end - strip < STRIP ? end - strip : STRIP;
            float sum[STRIP] = {0};
            add_alike(lookup, row, strip, width, sum, e);
            for (int64_t i = 0; i < width; i++)
                put(lookup->table, to * lookup->hidden + strip + i, true, (double)sum[i]);
        }
    }
}

/* For an f32 gradient: add row by row. */
INLINED void add_rows(const struct lookup *lookup, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = 0; row < lookup->count; row++) {
        int64_t to = embed_table_row(lookup, lookup->tokens[row]);
        if (to < 0)
            continue;
        const void *dy = from_number(lookup->rows, e, row * lookup->hidden);
        float *dw = (float *)lookup->table->data + to * lookup->hidden;
#pragma omp simd
        for (int64_t i = first; i < end; i++)
            dw[i] += load(dy, e, i);
    }
}

EITHER_ELEMENT(add_rows, lookup)
EITHER_ELEMENT(add_tokens, lookup)

/* `rows` is y, or its gradient. */
static struct lookup lookup_of(const struct kernel_call *call, const struct view *table,
                               const struct view *rows)
{
    return (struct lookup){.element = call->element,
                           .tokens = call->operand[0].data,
                           .table = table,
                           .rows = rows->data,
                           .count = call_rows(&rows->box),
                           .hidden = box_length(&table->box, 1)};
}

static void embed_forward(const struct kernel_call *call)
{
    struct lookup lookup = lookup_of(call, &call->operand[1], &call->operand[2]);
    parallel(lookup.count, 16, embed_forward_range, &lookup);
}

static void embed_backward(const struct kernel_call *call)
{
    const struct view *table = &call->gradient[1];
    struct lookup lookup = lookup_of(call, table, &call->gradient[2]);
    if (table->data)
        parallel(lookup.hidden, 16,
                 table->element == ELEMENT_F32 ? add_rows_range : add_tokens_range, &lookup);
}

const struct kernel cpu_embed = {"embed", {{embed_forward}, {embed_backward}}};

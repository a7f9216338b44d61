/* token_files.c - see token_files.h. */
#include "tests/worker/data/token_files.h"

#include "common/base/memory.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/tokens.h"

#include <stdlib.h>

void put(struct made *made, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        made->bytes = grow(made->bytes, made->size, &made->capacity, 1);
        made->bytes[made->size++] = (unsigned char)(value >> 8 * i);
    }
}

void save(struct made *made, const char *path)
{
    write_file(path, made->bytes, made->size);
    free(made->bytes);
    *made = (struct made){0};
}

void put_tokens(struct made *made, const int32_t *tokens, size_t count, size_t width)
{
    for (size_t i = 0; i < count; i++)
        put(made, (uint32_t)tokens[i], width);
}

void save_llm_c(const char *path, const int32_t *tokens, size_t count, size_t width)
{
    struct made made = {0};
    put(&made, width == 2 ? 20240520 : 20240801, 4);
    put(&made, width == 2 ? 1 : 7, 4);
    put(&made, count, 4);
    while (made.size < LLM_C_HEADER_SIZE)
        put(&made, 0, 4);
    put_tokens(&made, tokens, count, width);
    save(&made, path);
}

struct index index_of(const size_t *lengths, size_t count, size_t width)
{
    struct index index = {.version = 1,
                          .type = width == 2 ? 8 : 4,
                          .sequences = count,
                          .entries = count + 1,
                          .magic = "MMIDIDX\0\0"};
    for (size_t i = 0; i < count; i++) {
        index.lengths[i] = lengths[i];
        index.documents[i + 1] = i + 1;
        index.pointers[i + 1] = index.pointers[i] + lengths[i] * width;
    }
    return index;
}

void save_index(const struct index *index, const char *path)
{
    struct made made = {0};
    for (size_t i = 0; i < 9; i++)
        put(&made, (unsigned char)index->magic[i], 1);
    put(&made, index->version, 8);
    put(&made, index->type, 1);
    put(&made, index->sequences, 8);
    put(&made, index->entries, 8);
    for (size_t i = 0; i < index->sequences; i++)
        put(&made, index->lengths[i], 4);
    for (size_t i = 0; i < index->sequences; i++)
        put(&made, index->pointers[i], 8);
    for (size_t i = 0; i < index->entries; i++)
        put(&made, index->documents[i], 8);
    put(&made, 0, index->rest < 8 ? index->rest : 8);
    save(&made, path);
}

const size_t thirds[] = {7, 0, 13};

void ramp(int32_t tokens[COUNT])
{
    for (int i = 0; i < COUNT; i++)
        tokens[i] = 256 + i; /* wider than a byte */
}

/* All tokens of a corpus. */
static void read_all(const char *data, size_t count, int32_t *out)
{
    struct data_source *source = open_data(data, (int)count - 1, 0, 1);
    ck_assert_uint_eq(data_size(source), count);
    data_fill(source, DATA_TRAIN, 0, 0, 1, 0, (int64_t)count - 1, false, out);
    data_fill(source, DATA_TRAIN, 0, 0, 1, (int64_t)count - 2, (int64_t)count - 1, true,
              &out[count - 1]);
    data_close(source);
}

void check_tokens(const char *data, const int32_t *tokens, size_t count)
{
    int32_t *there = xcalloc(count, sizeof *there);
    read_all(data, count, there);
    ck_assert_mem_eq(there, tokens, count * sizeof *tokens);
    free(there);
}

/* token_files.h - files of tokens in every format, made byte by byte. */
#ifndef TESTS_WORKER_DATA_TOKEN_FILES_H
#define TESTS_WORKER_DATA_TOKEN_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a file that is being made. */
struct made {
    unsigned char *bytes;
    size_t size, capacity;
};

void put(struct made *made, uint64_t value, size_t width);
void put_tokens(struct made *made, const int32_t *tokens, size_t count, size_t width);
/* Write the file; nothing is left of `made`. */
void save(struct made *made, const char *path);

void save_llm_c(const char *path, const int32_t *tokens, size_t count, size_t width);

/* An index as Megatron-LM writes it, of documents of a sequence each. A test spoils one of them. */
struct index {
    uint64_t version, type, sequences, entries;
    uint64_t lengths[64], pointers[64], documents[65];
    const char *magic; /* 9 bytes */
    size_t rest;       /* bytes behind it all */
};

struct index index_of(const size_t *lengths, size_t count, size_t width);
void save_index(const struct index *index, const char *path);

/* The COUNT tokens of most tests, and as sequences. */
#define COUNT 20
extern const size_t thirds[3];
void ramp(int32_t tokens[COUNT]);

/* What is said of a file that nothing tells the format of, after its name. */
#define UNKNOWN                                                                                    \
    " has no header that tells its format: if it is tokens from its first byte on, as nanoGPT's "  \
    "train.bin, format: uint16 or uint32 says so; a .bin of Megatron-LM's has its .idx beside it"

/* Whether a job's data, as for open_data(), are these tokens. */
void check_tokens(const char *data, const int32_t *tokens, size_t count);

#endif

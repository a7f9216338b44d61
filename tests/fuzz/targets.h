/* targets.h - everything that a process of ours decodes and somebody else wrote.
 *
 * A target takes any bytes: it refuses them with a sentence, or takes them, and then what it took
 * is the same after being written and read once more. Anything else aborts. */
#ifndef TESTS_FUZZ_TARGETS_H
#define TESTS_FUZZ_TARGETS_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    const char *name;
    const ProtobufCMessageDescriptor *type; /* NULL: text */
    void (*run)(const struct fuzz_target *target, const uint8_t *bytes, size_t size);
};

/* Files of tokens: fuzz_tokens.c. */
void fuzz_tokens_run(const struct fuzz_target *target, const uint8_t *bytes, size_t size);
/* A tokenizer.json: fuzz_tokenizer.c. */
void fuzz_tokenizer_run(const struct fuzz_target *target, const uint8_t *bytes, size_t size);

/* NULL past the last: first the texts and the messages that have a decoder of their own, then
 * every request and reply of the Coordinator, by its message's name. */
const struct fuzz_target *fuzz_target_at(size_t index);
/* NULL when there is none of that name. */
const struct fuzz_target *fuzz_target_find(const char *name);

#endif

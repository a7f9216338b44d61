/* fields.h - members of a JSON object, each of one kind, or refused in words: -EINVAL says which
 * member, what it is, and what it must be. What is lent is lent by the object. */
#ifndef COMMON_HARDWARE_FIELDS_H
#define COMMON_HARDWARE_FIELDS_H

#include "common/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A text without a NUL in it; lent. */
int field_text(const json_t *object, const char *key, const char **out, struct error *err);
/* 0 to most. */
int field_size(const json_t *object, const char *key, uint64_t most, uint64_t *out,
               struct error *err);
int field_count(const json_t *object, const char *key, unsigned *out, struct error *err);
int field_rate(const json_t *object, const char *key, double *out, struct error *err);

/* The same of members that may be missing: *out is NULL, or stays as it is. */
int field_text_if(const json_t *object, const char *key, const char **out, struct error *err);
int field_size_if(const json_t *object, const char *key, uint64_t most, uint64_t *out,
                  struct error *err);
int field_rate_if(const json_t *object, const char *key, double *out, struct error *err);
int field_flag_if(const json_t *object, const char *key, bool *out, struct error *err);

#endif

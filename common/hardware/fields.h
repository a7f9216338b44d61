/* fields.h - reads members of a JSON object and checks their type. -EINVAL says which member is
 * wrong, what it is, and what it must be. Texts are borrowed from the object. */
#ifndef COMMON_HARDWARE_FIELDS_H
#define COMMON_HARDWARE_FIELDS_H

#include "common/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A text without a NUL in it. */
int field_text(const json_t *object, const char *key, const char **out, struct error *err);
/* An integer from 0 to `most`. */
int field_size(const json_t *object, const char *key, uint64_t most, uint64_t *out,
               struct error *err);
int field_count(const json_t *object, const char *key, unsigned *out, struct error *err);
int field_rate(const json_t *object, const char *key, double *out, struct error *err);

/* The same for members that may be missing: then a text is NULL, and other values stay unchanged.
 */
int field_text_if(const json_t *object, const char *key, const char **out, struct error *err);
int field_size_if(const json_t *object, const char *key, uint64_t most, uint64_t *out,
                  struct error *err);
int field_count_if(const json_t *object, const char *key, unsigned *out, struct error *err);
int field_rate_if(const json_t *object, const char *key, double *out, struct error *err);
int field_flag_if(const json_t *object, const char *key, bool *out, struct error *err);

#endif

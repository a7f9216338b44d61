/* fields.h - configuration as tables: one row per key says where its value goes and what is right.
 *
 *     static const struct field train_fields[] = {
 *         {.key = "steps", .kind = FIELD_INTEGER, .offset = offsetof(struct train, steps),
 *          .required = true, .least = 1, .greatest = 1e9, .unit = "steps"},
 *         {.key = NULL},
 *     };
 *
 * From the table come reading, defaults, printing, freeing, and every error sentence. A value
 * that is neither written nor has a default stays zero (NULL, 0, empty): "not given". */
#ifndef COMMON_CONFIG_FIELDS_H
#define COMMON_CONFIG_FIELDS_H

#include "common/base/error.h"
#include "common/config/document.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of texts; owned by the struct that holds it. */
struct texts {
    char **items;
    size_t count, capacity;
};

/* A list of equal sections; what it holds is read and freed by the row's fields. */
struct sections {
    void *items; /* the row says how large each is */
    size_t count, capacity;
};

/* To what need not be answered. */
enum answer { ANSWER_NONE, ANSWER_NO, ANSWER_YES };

/* What a value is, and how it lies at its row's offset. */
enum field_kind {
    FIELD_INTEGER,   /* int64_t */
    FIELD_REAL,      /* double */
    FIELD_SIZE,      /* uint64_t, bytes; written "16GiB" */
    FIELD_DURATION,  /* double, seconds; written "10m" */
    FIELD_BANDWIDTH, /* double, bytes per second; written "100Gbit/s" */
    FIELD_FLOPS,     /* double, operations per second; written "16.3TFLOP/s" */
    FIELD_BOOLEAN,   /* bool; written true or false */
    FIELD_ANSWER,    /* enum answer, of a boolean that may be left open; written likewise */
    FIELD_CHOICE,    /* int (any enum), an index into words; required, or with a default */
    FIELD_CHOICES,   /* uint32_t, bit i is words[i]; written as a single word or a list */
    FIELD_TEXT,      /* char *, never empty when given */
    FIELD_TEXTS,     /* struct texts; written as a single text or a list */
    FIELD_SECTION,   /* the rows of fields, whose offsets count from this one */
    FIELD_SECTIONS,  /* struct sections, each `size` bytes; written as a list, or as a single one */
};

struct field {
    const char *key; /* NULL ends the table */
    enum field_kind kind;
    size_t offset;
    bool required;
    /* Numbers: the limits; `above` leaves least itself out, `below` greatest. Sections: how many
     * at most. */
    double least, greatest;
    bool above, below;
    const char *unit;         /* integers and reals: "steps", or FIELD_NO_UNIT */
    const char *standard;     /* the default, as it would be written; NULL: none */
    const char *const *words; /* choices, ended by NULL; at most 32 */
    const struct field *fields;
    size_t size;       /* of an item of sections */
    const char *about; /* what it is for, in one line; `gimbal explain` prints it */
};

#define FIELD_NO_UNIT "no unit"

/* All sections: fill a zeroed struct with the defaults. */
void fields_defaults(const struct field *fields, void *values);
/* Free what the struct owns and zero what the rows describe; half-filled is fine. */
void fields_clear(const struct field *fields, void *values);

/* Defaults, then what the document's top mapping says. -EINVAL with file, line, column, key,
 * value and what would be right; values may then be half-filled: clear them all the same. */
int fields_read(const struct field *fields, const struct document *document, void *values,
                struct error *err);
/* Only what the document says, over what is there already; required rows may be missing. */
int fields_merge(const struct field *fields, const struct document *document, void *values,
                 struct error *err);
/* The same values as a YAML document, yours to free; reading it gives equal values. */
char *fields_print(const struct field *fields, const void *values);

/* The row called key; NULL when there is none. */
const struct field *fields_find(const struct field *fields, const char *key);
/* Of a row that is no section, nor a list of them: */
/* Read one value from text (lists: separated by commas), replacing the one before. -EINVAL with
 * "'value' is ...; write ..." and the value unchanged. */
int field_set(const struct field *field, const char *text, void *values, struct error *err);
/* Lists only: add one item, whatever commas it holds. */
int field_append(const struct field *field, const char *text, void *values, struct error *err);
/* Its value as field_set() takes it, yours to free; NULL when it is not given. */
char *field_print(const struct field *field, const void *values);
/* What would be right, as in "a whole number (steps), 1 to 1000"; returns out. */
char *field_describe(const struct field *field, char *out, size_t size);

#endif

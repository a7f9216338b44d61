/* fields.h - configuration described by tables: a row per key says where its value is stored and
 * what values are valid.
 *
 *     static const struct field train_fields[] = {
 *         {FIELD(train, steps, FIELD_INTEGER), .required = true, .least = 1, .greatest = 1e9,
 *          .unit = "steps"},
 *         {.key = NULL},
 *     };
 *
 * The table drives reading, defaults, printing, freeing and all error texts. A value that is
 * neither given nor has a default stays zero (NULL, 0, empty), which means "not given". */
#ifndef COMMON_CONFIG_FIELDS_H
#define COMMON_CONFIG_FIELDS_H

#include "common/base/error.h"
#include "common/config/document.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of texts, owned by the struct that contains it. */
struct texts {
    char **items;
    size_t count, capacity;
};

/* A list of sections of the same kind. The row's fields say how to read and free them. */
struct sections {
    void *items; /* each of the row's `size` */
    size_t count, capacity;
};

/* A boolean that may be left open. */
enum answer { ANSWER_NONE, ANSWER_NO, ANSWER_YES };

/* The kinds of values, and how each is stored at its row's offset. */
enum field_kind {
    FIELD_INTEGER,   /* int64_t */
    FIELD_REAL,      /* double */
    FIELD_SIZE,      /* uint64_t, bytes; written "16GiB" */
    FIELD_DURATION,  /* double, seconds; written "10m" */
    FIELD_BANDWIDTH, /* double, bytes per second; written "100Gbit/s" */
    FIELD_FLOPS,     /* double, operations per second; written "16.3TFLOP/s" */
    FIELD_BOOLEAN,   /* bool; written true or false */
    FIELD_ANSWER,    /* enum answer; written true or false */
    FIELD_CHOICE,    /* int (any enum), an index in words; must be required or have a default */
    FIELD_CHOICES,   /* uint32_t, bit i for words[i]; written as a single word or a list */
    FIELD_TEXT,      /* char *, never empty when given */
    FIELD_TEXTS,     /* struct texts; written as a single text or a list */
    FIELD_SECTION,   /* a struct described by `fields`, whose offsets count from this one */
    FIELD_SECTIONS,  /* struct sections of `size` bytes each; written as a list, or a single one */
};

struct field {
    const char *key; /* NULL ends the table */
    enum field_kind kind;
    size_t offset;
    bool required;
    /* Numbers: the limits; `above` excludes `least` itself, `below` excludes `greatest`. Lists of
     * sections: `greatest` is the most there may be. */
    double least, greatest;
    bool above, below;
    const char *unit;         /* integers and reals: "steps", or FIELD_NO_UNIT */
    const char *standard;     /* the default, as it would be written; NULL: none */
    const char *const *words; /* choices, ended by NULL; at most 32 */
    const struct field *fields;
    size_t size;          /* sections: of one item */
    const char *about;    /* what it is for, in one line; `gimbal explain` and --help print it */
    const char *value;    /* settings: what --help calls the value, as in "DIR" */
    const char *variable; /* settings: one that gives it if its own is not set; NULL: none */
};

#define FIELD_NO_UNIT "no unit"

/* The beginning of a row whose key is the name of the member: {FIELD(train, steps, FIELD_INTEGER),
 * ...}.
 */
#define FIELD(type, member, what)                                                                  \
    .key = #member, .kind = what, .offset = offsetof(struct type, member)

/* Fill a zeroed struct with the defaults, sections included. */
void fields_defaults(const struct field *fields, void *values);
/* Free what the struct owns and zero what the rows describe. Accepts a partly filled struct. */
void fields_clear(const struct field *fields, void *values);

/* Compare two structs of this table, sections included: called for each value that differs, with
 * its path ("train.lr") behind the prefix and both values as they would be written, NULL where one
 * is not given. */
typedef void fields_differ_cb(void *context, const char *path, const char *one, const char *other);
void fields_compare(const struct field *fields, const void *one, const void *other,
                    const char *prefix, fields_differ_cb *differ, void *context);

/* Fill a zeroed struct with the defaults, then with what the document says. -EINVAL with file,
 * line, column, key, value and what would be right; the struct may then be partly filled and has to
 * be cleared all the same. */
int fields_read(const struct field *fields, const struct document *document, void *values,
                struct error *err);
/* Overwrite only what the document says. Required rows may be missing. */
int fields_merge(const struct field *fields, const struct document *document, void *values,
                 struct error *err);

/* The row with this key; NULL when there is none. */
const struct field *fields_find(const struct field *fields, const char *key);

/* The functions below are for rows that are not sections or lists of them. */

/* Replace a value by one parsed from text; items of lists are separated by commas. -EINVAL with
 * "'value' is ...; write ..." and the value unchanged. */
int field_set(const struct field *field, const char *text, void *values, struct error *err);
/* Lists only: append one item, which may contain commas. */
int field_append(const struct field *field, const char *text, void *values, struct error *err);
/* The value as field_set() accepts it, freed by the caller; NULL when it is not given. */
char *field_print(const struct field *field, const void *values);
/* Describe the valid values, as in "a whole number (steps), 1 to 1000"; returns `out`. */
char *field_describe(const struct field *field, char *out, size_t size);

#endif

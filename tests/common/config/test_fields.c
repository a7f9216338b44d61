/* test_fields.c - every kind of field, read from text, refused in words, and printed back. */
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/config/document.h"
#include "common/config/fields.h"
#include "common/config/job.h"
#include "coordinator/planning/cluster_file.h"

#include "tests/support/printing.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum colour { RED, GREEN };

struct inner {
    int64_t depth;
    struct texts names;
};

struct every {
    int64_t count;
    double rate;
    uint64_t room;
    double wait;
    bool on;
    enum answer open;
    enum colour colour;
    uint32_t colours;
    char *title;
    struct texts paths;
    struct inner inner;
};

#define AT(type, member, what) .key = #member, .kind = what, .offset = offsetof(struct type, member)

static const char *const colours[] = {"red", "green", NULL};
static const struct field inner_fields[] = {
    {AT(inner, depth, FIELD_INTEGER), .required = true, .least = -3, .greatest = 3,
     .unit = "levels"},
    {AT(inner, names, FIELD_TEXTS)},
    {.key = NULL},
};
static const struct field every_fields[] = {
    {AT(every, count, FIELD_INTEGER), .required = true, .least = 1, .greatest = 1e12,
     .unit = "steps"},
    {AT(every, rate, FIELD_REAL), .above = true, .least = 0, .greatest = 0.5,
     .unit = FIELD_NO_UNIT},
    {AT(every, room, FIELD_SIZE), .standard = "1.5GiB", .least = 0x1p20, .greatest = 0x1p40},
    {AT(every, wait, FIELD_DURATION), .standard = "90s", .least = 1e-3, .greatest = 3600},
    {AT(every, on, FIELD_BOOLEAN), .standard = "true"},
    {AT(every, open, FIELD_ANSWER)},
    {AT(every, colour, FIELD_CHOICE), .standard = "green", .words = colours},
    {AT(every, colours, FIELD_CHOICES), .standard = "green", .words = colours},
    {AT(every, title, FIELD_TEXT), .standard = "none"},
    {AT(every, paths, FIELD_TEXTS), .standard = "a,b"},
    {AT(every, inner, FIELD_SECTION), .fields = inner_fields},
    {.key = NULL},
};

static int read_text(const char *text, struct every *every, struct error *err)
{
    struct document *document;
    memset(every, 0, sizeof *every);
    int rc = document_parse(text, strlen(text), "f.yaml", &document, err);
    if (rc < 0)
        return rc;
    rc = fields_read(every_fields, document, every, err);
    document_destroy(document);
    return rc;
}

START_TEST(every_kind_is_read)
{
    struct every every;
    struct error err = {""};
    ck_assert_msg(
        read_text(
            "count: 900000000000\nrate: 2.5e-1\nroom: 2MiB\nwait: 250ms\non: false\n"
            "open: false\ncolour: red\ncolours: [red, green]\ntitle: \"12\"\npaths: [\"a,b\", c]\n"
            "inner: {depth: -2, names: x}\n",
            &every, &err) == 0,
        "%s", err.text);
    ck_assert_int_eq(every.count, 900000000000);
    ck_assert_double_eq(every.rate, 0.25);
    ck_assert_uint_eq(every.room, 2u << 20);
    ck_assert_double_eq(every.wait, 0.25);
    ck_assert(!every.on);
    ck_assert_int_eq(every.open, ANSWER_NO);
    ck_assert_int_eq(every.colour, RED);
    ck_assert_uint_eq(every.colours, 3);
    ck_assert_str_eq(every.title, "12");
    ck_assert_uint_eq(every.paths.count, 2);
    ck_assert_str_eq(every.paths.items[0], "a,b");
    ck_assert_int_eq(every.inner.depth, -2);
    ck_assert_uint_eq(every.inner.names.count, 1);
    fields_clear(every_fields, &every);
    ck_assert_ptr_null(every.title);
    ck_assert_uint_eq(every.paths.count, 0);
}
END_TEST

START_TEST(what_is_not_written_has_its_default)
{
    struct every every;
    ck_assert_int_eq(read_text("count: 1\ninner: {depth: 0}\n", &every, NULL), 0);
    ck_assert_double_eq(every.rate, 0);
    ck_assert_uint_eq(every.room, 3u << 29);
    ck_assert_double_eq(every.wait, 90);
    ck_assert(every.on);
    ck_assert_int_eq(every.open, ANSWER_NONE);
    ck_assert_int_eq(every.colour, GREEN);
    ck_assert_uint_eq(every.colours, 1u << GREEN);
    ck_assert_str_eq(every.title, "none");
    ck_assert_uint_eq(every.paths.count, 2);
    fields_clear(every_fields, &every);
}
END_TEST

START_TEST(printing_and_reading_gives_the_same_values)
{
    struct every every, again;
    ck_assert_int_eq(
        read_text("count: 1234567\nrate: 0.1\nroom: 1048577B\nwait: 1.5s\n"
                  "open: true\ncolours: [red, green]\ntitle: \"a: \\\"b\\\" #c\\n\\u00e9\"\n"
                  "paths: [\"a,b\", \"true\"]\ninner: {depth: 3}\n",
                  &every, NULL),
        0);
    char *text = fields_print(every_fields, &every);
    ck_assert_ptr_nonnull(strstr(text, "\nwait: 1500ms\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nroom: 1048577B\n"));
    struct error err = {""};
    ck_assert_msg(read_text(text, &again, &err) == 0, "%s\n%s", err.text, text);
    ck_assert_int_eq(again.count, every.count);
    ck_assert_double_eq(again.rate, every.rate);
    ck_assert_uint_eq(again.room, every.room);
    ck_assert_double_eq(again.wait, every.wait);
    ck_assert_int_eq(again.on, every.on);
    ck_assert_int_eq(again.open, ANSWER_YES);
    ck_assert_uint_eq(again.colours, every.colours);
    ck_assert_str_eq(again.title, "a: \"b\" #c\n\u00e9");
    ck_assert_uint_eq(again.paths.count, 2);
    ck_assert_str_eq(again.paths.items[0], "a,b");
    ck_assert_int_eq(again.inner.depth, 3);
    free(text);
    fields_clear(every_fields, &every);
    fields_clear(every_fields, &again);
}
END_TEST

#define INNER "inner: {depth: 0}\n"

/* What is written, and the whole sentence that answers it. */
static const struct {
    const char *text, *sentence;
} faults[] = {
    {"count: many\n",
     "f.yaml:1:8: count: 'many' is not a whole number: write a whole number (steps), "
     "1 to 1000000000000"},
    {"count: 1.5\n",
     "f.yaml:1:8: count: '1.5' is not a whole number: write a whole number (steps), "
     "1 to 1000000000000"},
    {"count: 0\n",
     "f.yaml:1:8: count: '0' is out of range: write a whole number (steps), 1 to 1000000000000"},
    {"count: 99999999999999999999\n",
     "f.yaml:1:8: count: '99999999999999999999' is out of range: write a whole number (steps), "
     "1 to 1000000000000"},
    {"count: \"5\"\n",
     "f.yaml:1:8: count: '5' is a string because of its quotes: write a whole number "
     "(steps), 1 to 1000000000000"},
    {"count: [5]\n",
     "f.yaml:1:8: count: is a list: write a whole number (steps), 1 to 1000000000000"},
    {"count: {a: 5}\n",
     "f.yaml:1:8: count: is a section: write a whole number (steps), 1 to 1000000000000"},
    {"count:\n",
     "f.yaml:1:7: count: has no value: write a whole number (steps), 1 to 1000000000000"},
    {INNER, "f.yaml:1:1: count: missing: write a whole number (steps), 1 to 1000000000000"},
    {"count: 1\nrate: fast\n",
     "f.yaml:2:7: rate: 'fast' is not a number: write a number (no unit), above 0 and at most 0.5"},
    {"count: 1\nrate: nan\n",
     "f.yaml:2:7: rate: 'nan' is not a number: write a number (no unit), above 0 and at most 0.5"},
    {"count: 1\nrate: 0\n",
     "f.yaml:2:7: rate: '0' is out of range: write a number (no unit), above 0 and at most 0.5"},
    {"count: 1\nrate: 1e999\n", "f.yaml:2:7: rate: '1e999' is out of range: write a number (no "
                                "unit), above 0 and at most 0.5"},
    {"count: 1\nroom: 12 parsecs\n",
     "f.yaml:2:7: room: '12 parsecs' is not a size: write a size with "
     "its unit, 1MiB to 1TiB"},
    {"count: 1\nroom: 2TiB\n",
     "f.yaml:2:7: room: '2TiB' is out of range: write a size with its unit, 1MiB to 1TiB"},
    {"count: 1\nroom: 5\n", "f.yaml:2:7: room: '5' is a number of bytes, and out of range: write a "
                            "size with its unit, 1MiB to 1TiB"},
    {"count: 1\nwait: 30\n",
     "f.yaml:2:7: wait: '30' is not a duration: write a duration with its unit, 1ms to 1h"},
    {"count: 1\nwait: 2h\n",
     "f.yaml:2:7: wait: '2h' is out of range: write a duration with its unit, 1ms to 1h"},
    {"count: 1\non: yes\n", "f.yaml:2:5: on: 'yes' is neither: write true or false"},
    {"count: 1\nopen: maybe\n", "f.yaml:2:7: open: 'maybe' is neither: write true or false"},
    {"count: 1\nopen: 'true'\n",
     "f.yaml:2:7: open: 'true' is a string because of its quotes: write true or false"},
    {"count: 1\ncolour: blue\n", "f.yaml:2:9: colour: 'blue' is not known: write red or green"},
    {"count: 1\ncolours: [red,\n  blue]\n",
     "f.yaml:3:3: colours: 'blue' is not known: write red or green, or a list of them"},
    {"count: 1\ntitle: ''\n", "f.yaml:2:8: title: '' is empty: write a string"},
    {"count: 1\ntitle: [a]\n", "f.yaml:2:8: title: is a list: write a string"},
    {"count: 1\ntitle: \"a\\0b\"\n", "f.yaml:2:8: title: holds a NUL character"},
    {"count: 1\npaths: {a: b}\n",
     "f.yaml:2:8: paths: is a section: write a string or a list of strings"},
    {"count: 1\npaths: [a, [b]]\n",
     "f.yaml:2:12: paths: is a list: write a string or a list of strings"},
    {"count: 1\ninner: deep\n",
     "f.yaml:2:8: inner: is a single value: write a section of keys and values"},
    {"count: 1\ninner:\n  names: x\n",
     "f.yaml:3:3: inner.depth: missing: write a whole number (levels), -3 to 3"},
    {"count: 1\ninner:\n  detph: 1\n",
     "f.yaml:3:3: inner.detph: unknown key; did you mean 'depth'?"},
    {"count: 1\nconut: 1\n", "f.yaml:2:1: conut: unknown key; did you mean 'count'?"},
    {"count: 1\ndepth: 1\n", "f.yaml:2:1: depth: unknown key here; it belongs in 'inner'"},
    {"count: 1\nzebra: 1\n",
     "f.yaml:2:1: zebra: unknown key; known are count, rate, room, wait, on, open, "
     "colour, colours, title, paths, inner"},
    {"count: 1\nrate: 0.1\ncount: 2\n", "f.yaml:3:1: count: written twice; the first is in line 1"},
    {"count: 1\n\"on\\0\": true\n", "f.yaml:2:1: this key holds a NUL character"},
    {"count: 1\n[a]: 2\n", "f.yaml:2:1: a list cannot be a key"},
    {"count: 1\n---\ncount: 2\n",
     "f.yaml:3:1: a second document begins here; write one document per file"},
    {"- count\n", "f.yaml:1:1: not a mapping; write 'key: value' lines"},
    {"# nothing\n", "f.yaml:1:1: the document is empty; write 'key: value' lines"},
    {"count: 1\nrate: [\n",
     "f.yaml:3:1: not YAML: did not find expected node content (while parsing "
     "a flow node)"},
    {"count: 1\nti\xfftle: 1\n", "f.yaml:2:3: not YAML: invalid leading UTF-8 octet"},
};

START_TEST(a_fault_is_named_with_its_place_key_value_and_what_is_right)
{
    struct every every;
    struct error err = {""};
    ck_assert_int_eq(read_text(faults[_i].text, &every, &err), -EINVAL);
    ck_assert_str_eq(err.text, faults[_i].sentence);
    fields_clear(every_fields, &every);
}
END_TEST

START_TEST(an_alias_to_itself_ends_in_a_sentence)
{
    struct every every;
    struct error err;
    ck_assert_int_eq(read_text("count: 1\ninner: &a {depth: *a}\n", &every, &err), -EINVAL);
    ck_assert_str_eq(err.text, "f.yaml:2:8: inner.depth: is a section: write a whole number "
                               "(levels), -3 to 3");
    fields_clear(every_fields, &every);
}
END_TEST

START_TEST(a_wrong_item_leaves_the_list_as_it_was)
{
    struct every every = {0};
    struct error err;
    const struct field *paths = fields_find(every_fields, "paths");
    ck_assert_int_eq(field_set(paths, "x,y,z", &every, NULL), 0);
    ck_assert_int_eq(field_set(paths, "p,,q", &every, &err), -EINVAL);
    ck_assert_str_eq(err.text, "'' is empty: write a string or a list of strings");
    char *text = field_print(paths, &every);
    ck_assert_str_eq(text, "x,y,z");
    free(text);
    fields_clear(every_fields, &every);
}
END_TEST

/* Each ill-formed in its own way: stray, missing, overlong, surrogate, past the last letter. */
static const char *const not_utf8[] = {
    "\x80", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"};

START_TEST(a_text_that_yaml_could_not_hold_is_refused)
{
    struct every every = {0};
    struct error err;
    ck_assert_int_eq(field_set(fields_find(every_fields, "title"), not_utf8[_i], &every, &err),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "is not UTF-8"));
    ck_assert_ptr_null(every.title);
}
END_TEST

START_TEST(every_size_and_shape_of_letter_is_utf8)
{
    struct every every = {0};
    const char *letters = "a\u00e9\u20ac\U0001f600\U0010ffff";
    ck_assert_int_eq(field_set(fields_find(every_fields, "title"), letters, &every, NULL), 0);
    ck_assert_str_eq(every.title, letters);
    fields_clear(every_fields, &every);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_named_with_the_reason)
{
    struct document *document;
    struct error err;
    ck_assert_int_eq(document_load("/proc/nonexistent/job.yaml", &document, &err), -ENOENT);
    ck_assert_str_eq(err.text,
                     "cannot open '/proc/nonexistent/job.yaml': No such file or directory");
    ck_assert_int_eq(document_load("/", &document, &err), -EISDIR);
    ck_assert_str_eq(err.text, "cannot read '/': Is a directory");
    ck_assert_int_eq(document_load("/dev/zero", &document, &err), -EFBIG);
}
END_TEST

/* A text that is beyond the limits of any row, and is read by its kind; NULL: not a number. */
static const char *beyond(enum field_kind kind)
{
    switch (kind) {
    case FIELD_INTEGER:
        return "99999999999999999999";
    case FIELD_REAL:
        return "1e300";
    case FIELD_SIZE:
        return "8000000TiB";
    case FIELD_DURATION:
        return "1e100h";
    case FIELD_BANDWIDTH:
        return "1e100TB/s";
    case FIELD_FLOPS:
        return "1e100PFLOP/s";
    default:
        return NULL;
    }
}

static double value_of(const struct field *row, const char *text)
{
    union {
        int64_t integer;
        uint64_t size;
        double real;
    } value = {.integer = 0};
    struct field free_row = *row; /* so that the limits themselves can be read */
    free_row.offset = 0;
    free_row.above = free_row.below = false;
    struct error err;
    ck_assert_msg(field_set(&free_row, text, &value, &err) == 0, "%s: %s", row->key, err.text);
    return row->kind == FIELD_INTEGER ? (double)value.integer
           : row->kind == FIELD_SIZE  ? (double)value.size
                                      : value.real;
}

/* The words end in "LEAST to GREATEST", or in "above LEAST and at most GREATEST" and the like. */
static void check_limits(const struct field *row, const char *words)
{
    char least[64], greatest[64];
    const char *last = strrchr(words, ' '), *before = last;
    snprintf(greatest, sizeof greatest, "%s", last + 1);
    const char *const joints[] = {" to ", " and at most ", " and below "};
    for (size_t i = 0; i < 3; i++)
        for (const char *at = words; (at = strstr(at, joints[i])); at++)
            if (at + strlen(joints[i]) == last + 1)
                before = at;
    ck_assert_msg(before < last, "%s: %s", row->key, words);
    const char *start = before;
    while (start > words && start[-1] != ' ')
        start--;
    snprintf(least, sizeof least, "%.*s", (int)(before - start), start);
    ck_assert_msg(value_of(row, least) == row->least, "%s: %s", row->key, words);
    ck_assert_msg(value_of(row, greatest) == row->greatest, "%s: %s", row->key, words);
}

static int check_rows(const struct field *fields)
{
    int count = 0;
    for (const struct field *row = fields; row->key; row++) {
        char unused[64] = "";
        struct error err;
        struct field here = *row;
        here.offset = 0;
        if (row->fields)
            count += check_rows(row->fields);
        if (!beyond(row->kind))
            continue;
        ck_assert_int_eq(field_set(&here, beyond(row->kind), unused, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, "is out of range: write ") != NULL, "%s", err.text);
        check_limits(row, err.text);
        count++;
    }
    return count;
}

static void note_difference(void *out, const char *path, const char *one, const char *other)
{
    char *text = *(char **)out;
    *(char **)out =
        xasprintf("%s%s: %s, %s; ", text ? text : "", path, one ? one : "-", other ? other : "-");
    free(text);
}

START_TEST(what_differs_is_told_as_it_would_be_written)
{
    struct every one = {.count = 1}, other = {.count = 1};
    char *told = NULL;
    fields_defaults(every_fields, &one);
    fields_defaults(every_fields, &other);
    fields_compare(every_fields, &one, &other, "", note_difference, &told);
    ck_assert_ptr_null(told);
    other.count = 20;
    other.wait = 5;
    other.open = ANSWER_YES;
    other.colour = RED;
    ck_assert_int_eq(field_set(fields_find(every_fields, "paths"), "c", &other, NULL), 0);
    other.inner.depth = -2;
    fields_compare(every_fields, &one, &other, "all.", note_difference, &told);
    ck_assert_str_eq(told, "all.count: 1, 20; all.wait: 90s, 5s; all.open: -, true; "
                           "all.colour: green, red; all.paths: a,b, c; all.inner.depth: 0, -2; ");
    free(told);
    fields_clear(every_fields, &one);
    fields_clear(every_fields, &other);
}
END_TEST

/* In the units in which they are written: what is printed can be read. */
START_TEST(both_limits_of_every_number_are_told)
{
    ck_assert_int_gt(check_rows(job_config_fields), 30);
    ck_assert_int_gt(check_rows(cluster_config_fields), 5);
    ck_assert_int_gt(check_rows(every_fields), 4);
}
END_TEST

SUITE(fields)
{
    TCase *tcase = tcase_create("fields");
    tcase_add_test(tcase, every_kind_is_read);
    tcase_add_test(tcase, what_is_not_written_has_its_default);
    tcase_add_test(tcase, printing_and_reading_gives_the_same_values);
    tcase_add_loop_test(tcase, a_fault_is_named_with_its_place_key_value_and_what_is_right, 0,
                        sizeof faults / sizeof *faults);
    tcase_add_test(tcase, an_alias_to_itself_ends_in_a_sentence);
    tcase_add_test(tcase, a_wrong_item_leaves_the_list_as_it_was);
    tcase_add_loop_test(tcase, a_text_that_yaml_could_not_hold_is_refused, 0,
                        sizeof not_utf8 / sizeof *not_utf8);
    tcase_add_test(tcase, every_size_and_shape_of_letter_is_utf8);
    tcase_add_test(tcase, a_file_that_cannot_be_read_is_named_with_the_reason);
    tcase_add_test(tcase, both_limits_of_every_number_are_told);
    tcase_add_test(tcase, what_differs_is_told_as_it_would_be_written);
    return suite_run("fields", tcase, NULL);
}

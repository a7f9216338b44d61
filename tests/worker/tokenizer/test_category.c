/* test_category.c - of all characters, those are in a category that the package tokenizers has in
 * it, whatever PCRE2 knows. */
#include "common/base/memory.h"
#include "tests/support/suite.h"
#include "worker/tokenizer/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define CODES 0x110000

/* How many characters tokenizers 0.23.3 matches by \p{...}, and the sum of their code points. */
static const struct {
    const char *category;
    long count;
    long long sum;
} categories[] = {
    {"L", 141028, 15240929258},
    {"Lu", 1858, 86924357},
    {"Ll", 2258, 104713123},
    {"Lt", 31, 220514},
    {"Lm", 404, 19538368},
    {"Lo", 136477, 15029532896},
    {"M", 2501, 316771473},
    {"Mn", 2020, 296911989},
    {"Mc", 468, 19663575},
    {"Me", 13, 195909},
    {"N", 1911, 110651895},
    {"Nd", 760, 39891450},
    {"Nl", 236, 13199783},
    {"No", 915, 57560662},
    {"P", 855, 28835015},
    {"Pc", 10, 415682},
    {"Pd", 27, 635487},
    {"Ps", 79, 1830591},
    {"Pe", 77, 1814706},
    {"Pi", 12, 112041},
    {"Pf", 10, 95624},
    {"Po", 640, 23930884},
    {"S", 8514, 620170451},
    {"Sm", 950, 11722907},
    {"Sc", 63, 1352243},
    {"Sk", 125, 3403074},
    {"So", 7376, 603692227},
    {"Z", 19, 141398},
    {"Zs", 17, 124933},
    {"Zl", 1, 8232},
    {"Zp", 1, 8233},
    {"C", 957236, 604189375390},
    {"Cc", 65, 5215},
    {"Cf", 170, 92312063},
    {"Co", 137468, 137822040966},
    {"Cn", 819533, 466275017146},
};

static char *text; /* of all characters, in order */
static size_t text_size;
static struct error err;

static void setup(void)
{
    text = xcalloc(CODES, 4);
    for (int32_t code = 0; code < CODES; code++)
        if (code < 0xd800 || code > 0xdfff)
            text_size += (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)text + text_size);
}

static void teardown(void)
{
    free(text);
}

/* Count the characters of the pieces that match, or that do not. */
static void check(const char *form, bool matched, size_t which)
{
    char expression[40];
    struct pattern *pattern;
    long count = 0;
    long long sum = 0;
    snprintf(expression, sizeof expression, form, categories[which].category);
    ck_assert_msg(pattern_create(expression, &pattern, &err) == 0, "%s", err.text);
    struct matcher *matcher = matcher_create(pattern);
    for (size_t at = 0; at < text_size;) {
        bool matches;
        long size = pattern_piece(matcher, text + at, text_size - at, true, &matches, &err);
        ck_assert_msg(size > 0, "%s: %s", expression, err.text);
        for (size_t end = at + (size_t)size; at < end;) {
            utf8proc_int32_t code;
            at += (size_t)utf8proc_iterate((utf8proc_uint8_t *)text + at,
                                           (utf8proc_ssize_t)(end - at), &code);
            count += matches == matched;
            sum += matches == matched ? code : 0;
        }
    }
    ck_assert_msg(count == categories[which].count && sum == categories[which].sum,
                  "%s: %ld characters, the package has %ld", expression, count,
                  categories[which].count);
    matcher_destroy(matcher);
    pattern_destroy(pattern);
}

START_TEST(a_category_has_the_characters_of_unicode_16)
{
    check("\\p{%s}+", true, (size_t)_i);
}
END_TEST

/* Of those that PCRE2 takes otherwise in several ways. */
START_TEST(a_category_may_be_part_of_a_class_or_negated)
{
    static const char *const some[] = {"L", "Mn", "Cn"};
    size_t which = 0;
    while (strcmp(categories[which].category, some[_i]) != 0)
        which++;
    check("[\\p{%s}]+", true, which);
    check("[^\\p{%s}]+", false, which);
    check("\\P{%s}+", false, which);
    check("[\\P{%s}]+", false, which);
}
END_TEST

/* A dash beside a category is a dash. */
START_TEST(a_category_in_a_class_is_no_end_of_a_range)
{
    static const char *const classes[] = {"[-\\p{N}]", "[\\p{N}-]", "[+\\p{Mn}-]"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        struct pattern *pattern;
        bool matches;
        ck_assert_msg(pattern_create(classes[i], &pattern, &err) == 0, "%s", err.text);
        struct matcher *matcher = matcher_create(pattern);
        ck_assert_int_eq(pattern_piece(matcher, "-", 1, true, &matches, &err), 1);
        ck_assert(matches);
        ck_assert_int_eq(pattern_piece(matcher, ",", 1, true, &matches, &err), 1);
        ck_assert(!matches);
        matcher_destroy(matcher);
        pattern_destroy(pattern);
    }
}
END_TEST

SUITE(category)
{
    const int count = (int)(sizeof categories / sizeof *categories);
    TCase *tcase = tcase_create("category");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_category_has_the_characters_of_unicode_16, 0, count);
    tcase_add_loop_test(tcase, a_category_may_be_part_of_a_class_or_negated, 0, 3);
    tcase_add_test(tcase, a_category_in_a_class_is_no_end_of_a_range);
    return suite_run("category", tcase, NULL);
}

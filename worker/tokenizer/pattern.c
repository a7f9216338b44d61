/* pattern.c - compiles an expression, and finds pieces with partial matching: whoever reaches the
 * end of a text that is not whole does not know yet. */
#include "worker/tokenizer/pattern.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* An expression that backtracks without end is stopped; a long piece may need a few million. */
#define STEPS_MAX 30000000
#define HEAP_MAX_KIB (256 << 10)
#define STACK_MIN ((size_t)32 << 10)
#define STACK_MAX ((size_t)8 << 20)

const char pattern_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

struct pattern {
    pcre2_code *code;
};

struct matcher {
    const pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static void *check(void *created)
{
    if (!created)
        abort(); /* out of memory, as in xcalloc() */
    return created;
}

static int compile(const char *expression, const char *translated, pcre2_code **out,
                   struct error *err)
{
    int number;
    size_t offset;
    uint32_t empty;
    unsigned char words[120];
    pcre2_compile_context *context = check(pcre2_compile_context_create(NULL));
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    *out = pcre2_compile((PCRE2_SPTR)translated, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                         &number, &offset, context);
    pcre2_compile_context_free(context);
    if (!*out) {
        pcre2_get_error_message(number, words, sizeof words);
        return error_set(err, -EINVAL, "the pattern '%.200s' is none: %s", expression, words);
    }
    pcre2_pattern_info(*out, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty)
        return error_set(err, -EINVAL,
                         "the pattern '%.200s' matches nothing at all, too, which is not supported",
                         expression);
    return 0;
}

int pattern_create(const char *expression, struct pattern **out, struct error *err)
{
    char *translated = pattern_translate(expression, err);
    if (!translated)
        return -EINVAL;
    struct pattern *pattern = xcalloc(1, sizeof *pattern);
    int rc = compile(expression, translated, &pattern->code, err);
    free(translated);
    if (rc < 0) {
        pattern_destroy(pattern);
        return rc;
    }
    /* Where no code may be made, pcre2_match() interprets the expression. */
    pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    *out = pattern;
    return 0;
}

void pattern_destroy(struct pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    free(pattern);
}

struct matcher *matcher_create(const struct pattern *pattern)
{
    struct matcher *matcher = xcalloc(1, sizeof *matcher);
    matcher->code = pattern->code;
    matcher->data = check(pcre2_match_data_create_from_pattern(pattern->code, NULL));
    matcher->context = check(pcre2_match_context_create(NULL));
    matcher->stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, NULL); /* NULL without JIT */
    pcre2_set_match_limit(matcher->context, STEPS_MAX);
    pcre2_set_heap_limit(matcher->context, HEAP_MAX_KIB);
    if (matcher->stack)
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    return matcher;
}

void matcher_destroy(struct matcher *matcher)
{
    if (!matcher)
        return;
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    free(matcher);
}

long pattern_piece(struct matcher *matcher, const char *text, size_t size, bool whole,
                   struct error *err)
{
    unsigned char words[120];
    int rc = pcre2_match(matcher->code, (PCRE2_SPTR)text, size, 0,
                         PCRE2_NO_UTF_CHECK | (whole ? 0 : PCRE2_PARTIAL_HARD), matcher->data,
                         matcher->context);
    if (rc == PCRE2_ERROR_PARTIAL)
        return 0;
    if (rc == PCRE2_ERROR_NOMATCH)
        return whole ? (long)size : 0;
    if (rc < 0) {
        pcre2_get_error_message(rc, words, sizeof words);
        return error_set(err, -EINVAL, "the pattern cannot divide a text: %s", words);
    }
    const size_t *found = pcre2_get_ovector_pointer(matcher->data);
    return (long)(found[0] > 0 ? found[0] : found[1]);
}

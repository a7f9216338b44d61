/* pattern.c - translates an expression, compiles it, and finds pieces with partial matching:
 * whoever reaches the end of a text that is not whole does not know yet.
 *
 * Of Oniguruma's expressions only what is listed here passes. \s is Unicode's White_Space there,
 * while PCRE2's also has U+180E. \h, \w, \v, \b, ^ and $ mean other things; a quantifier {n,m} that
 * is lazy or possessive is one of another kind. */
#include "worker/tokenizer/pattern.h"

#include "common/base/memory.h"
#include "worker/tokenizer/byte_buffer.h"
#include "worker/tokenizer/category.h"

#include <ctype.h>
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

/* Its last item cannot begin a range. */
#define WHITE "\\t-\\r\\x{85}\\p{Z}"

struct translation {
    const char *start, *at;
    struct byte_buffer out;
    bool in_class;
    struct error *err;
};

static void translate_put(struct translation *in, const char *text)
{
    byte_buffer_add(&in->out, text, strlen(text));
}

/* Copy `size` bytes of the expression. */
static bool translate_copy(struct translation *in, size_t size)
{
    byte_buffer_add(&in->out, in->at, size);
    in->at += size;
    return true;
}

static bool translate_refuse(struct translation *in, size_t size)
{
    error_set(in->err, -EINVAL,
              "the pattern '%.200s' has '%.*s' at byte %zu, which is not supported", in->start,
              (int)size, in->at, (size_t)(in->at - in->start));
    return false;
}

/* \p{L}, \p{Lu}, \P{N}: general categories. Scripts mean other characters in PCRE2. */
static bool take_property(struct translation *in)
{
    char name[3] = "";
    size_t size = strcspn(in->at, "}");
    bool category = in->at[2] == '{' && in->at[size] == '}' && (size == 4 || size == 5) &&
                    strchr("CLMNPSZ", in->at[3]) &&
                    (size == 4 || islower((unsigned char)in->at[4]));
    if (!category)
        return translate_refuse(in, size + (in->at[size] != '\0'));
    memcpy(name, in->at + 3, size - 3);
    category_print(&in->out, name, in->at[1] == 'P', in->in_class);
    in->at += size + 1;
    return true;
}

static bool take_escape(struct translation *in)
{
    char code = in->at[1];
    bool in_class = in->in_class;
    if (code == 'p' || code == 'P')
        return take_property(in);
    if (code == 's' || (code == 'S' && !in_class))
        translate_put(in, in_class ? WHITE : code == 's' ? "[" WHITE "]" : "[^" WHITE "]");
    else if (code == 'd')
        category_print(&in->out, "Nd", false, in_class);
    else if (code && (strchr("rntf", code) || ispunct((unsigned char)code)))
        return translate_copy(in, 2);
    else
        return translate_refuse(in, code ? 2 : 1);
    in->at += 2;
    return true;
}

static bool take_group(struct translation *in)
{
    static const char *const kinds[] = {"(?:", "(?i:", "(?!", "(?=", "(?>"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(in->at, kinds[i], strlen(kinds[i])) == 0)
            return translate_copy(in, strlen(kinds[i]));
    return in->at[1] == '?' || in->at[1] == '*' ? translate_refuse(in, 3) : translate_copy(in, 1);
}

/* {n}, {n,} or {n,m}. */
static bool take_count(struct translation *in)
{
    size_t digits = strspn(in->at + 1, "0123456789"), size = 1 + digits;
    if (in->at[size] == ',')
        size += 1 + strspn(in->at + size + 1, "0123456789");
    if (digits == 0 || in->at[size] != '}')
        return translate_refuse(in, 1);
    if (in->at[size + 1] == '?' || in->at[size + 1] == '+')
        return translate_refuse(in, size + 2);
    return translate_copy(in, size + 1);
}

/* In a class: no class inside it, and no intersection. */
static bool take_in_class(struct translation *in)
{
    if (*in->at == '[' || strncmp(in->at, "&&", 2) == 0)
        return translate_refuse(in, *in->at == '[' ? 1 : 2);
    if (*in->at == ']')
        in->in_class = false;
    return translate_copy(in, 1);
}

/* A class that begins with ']' is empty or not, depending on who reads it. */
static bool open_class(struct translation *in)
{
    size_t size = in->at[1] == '^' ? 2 : 1;
    if (in->at[size] == ']')
        return translate_refuse(in, size + 1);
    in->in_class = true;
    return translate_copy(in, size);
}

static bool take_one(struct translation *in)
{
    if (*in->at == '\\')
        return take_escape(in);
    if (in->in_class)
        return take_in_class(in);
    switch (*in->at) {
    case '[':
        return open_class(in);
    case '(':
        return take_group(in);
    case '{':
        return take_count(in);
    case '^':
    case '$':
        return translate_refuse(in, 1);
    default:
        return translate_copy(in, 1);
    }
}

/* The expression as PCRE2 has it, freed by the caller; NULL with the reason. */
static char *translate(const char *expression, struct error *err)
{
    struct translation in = {.start = expression, .at = expression, .err = err};
    while (*in.at)
        if (!take_one(&in)) {
            byte_buffer_finish(&in.out);
            return NULL;
        }
    byte_buffer_add(&in.out, "", 1);
    return in.out.bytes;
}

struct pattern {
    pcre2_code *code;
};

struct matcher {
    const pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static void *check_created(void *created)
{
    if (!created)
        abort(); /* out of memory, as in xcalloc() */
    return created;
}

static int compile_pattern(const char *expression, const char *translated, pcre2_code **out,
                           struct error *err)
{
    int number;
    size_t offset;
    uint32_t empty;
    unsigned char words[120];
    pcre2_compile_context *context = check_created(pcre2_compile_context_create(NULL));
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
    char *translated = translate(expression, err);
    if (!translated)
        return -EINVAL;
    struct pattern *pattern = xcalloc(1, sizeof *pattern);
    int rc = compile_pattern(expression, translated, &pattern->code, err);
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
    matcher->data = check_created(pcre2_match_data_create_from_pattern(pattern->code, NULL));
    matcher->context = check_created(pcre2_match_context_create(NULL));
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
                   bool *matches, struct error *err)
{
    unsigned char words[120];
    *matches = false;
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
    *matches = found[0] == 0;
    return (long)(*matches ? found[1] : found[0]);
}

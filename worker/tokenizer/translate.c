/* translate.c - an expression of Oniguruma as PCRE2 has it: only what is listed here passes.
 *
 * \s is Unicode's White_Space there, while PCRE2's also has U+180E. \h, \w, \v, \b, ^ and $ mean
 * other things; a quantifier {n,m} that is lazy or possessive is one of another kind. */
#include "worker/tokenizer/pattern.h"

#include "worker/tokenizer/byte_buffer.h"

#include <ctype.h>
#include <errno.h>

/* Its last item cannot begin a range. */
#define WHITE "\\t-\\r\\x{85}\\p{Z}"

struct translation {
    const char *start, *at;
    struct byte_buffer out;
    bool in_class;
    struct error *err;
};

static void put(struct translation *in, const char *text)
{
    byte_buffer_add(&in->out, text, strlen(text));
}

/* Copy `size` bytes of the expression. */
static bool take(struct translation *in, size_t size)
{
    byte_buffer_add(&in->out, in->at, size);
    in->at += size;
    return true;
}

static bool refuse(struct translation *in, size_t size)
{
    error_set(in->err, -EINVAL,
              "the pattern '%.200s' has '%.*s' at byte %zu, which is not supported", in->start,
              (int)size, in->at, (size_t)(in->at - in->start));
    return false;
}

/* \p{L}, \p{Lu}, \P{N}: general categories. Scripts mean other characters in PCRE2. */
static bool take_property(struct translation *in)
{
    size_t size = strcspn(in->at, "}");
    bool category = in->at[2] == '{' && in->at[size] == '}' && (size == 4 || size == 5) &&
                    strchr("CLMNPSZ", in->at[3]) &&
                    (size == 4 || islower((unsigned char)in->at[4]));
    return category ? take(in, size + 1) : refuse(in, size + (in->at[size] != '\0'));
}

static bool take_escape(struct translation *in)
{
    char code = in->at[1];
    bool in_class = in->in_class;
    if (code == 'p' || code == 'P')
        return take_property(in);
    if (code == 's' || (code == 'S' && !in_class)) {
        put(in, in_class ? WHITE : code == 's' ? "[" WHITE "]" : "[^" WHITE "]");
        in->at += 2;
        return true;
    }
    if (code && (strchr("rntfd", code) || ispunct((unsigned char)code)))
        return take(in, 2);
    return refuse(in, code ? 2 : 1);
}

static bool take_group(struct translation *in)
{
    static const char *const kinds[] = {"(?:", "(?i:", "(?!", "(?=", "(?>"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(in->at, kinds[i], strlen(kinds[i])) == 0)
            return take(in, strlen(kinds[i]));
    return in->at[1] == '?' || in->at[1] == '*' ? refuse(in, 3) : take(in, 1);
}

/* {n}, {n,} or {n,m}. */
static bool take_count(struct translation *in)
{
    size_t digits = strspn(in->at + 1, "0123456789"), size = 1 + digits;
    if (in->at[size] == ',')
        size += 1 + strspn(in->at + size + 1, "0123456789");
    if (digits == 0 || in->at[size] != '}')
        return refuse(in, 1);
    if (in->at[size + 1] == '?' || in->at[size + 1] == '+')
        return refuse(in, size + 2);
    return take(in, size + 1);
}

/* In a class: no class inside it, and no intersection. */
static bool take_in_class(struct translation *in)
{
    if (*in->at == '[' || strncmp(in->at, "&&", 2) == 0)
        return refuse(in, *in->at == '[' ? 1 : 2);
    if (*in->at == ']')
        in->in_class = false;
    return take(in, 1);
}

/* A class that begins with ']' is empty or not, depending on who reads it. */
static bool open_class(struct translation *in)
{
    size_t size = in->at[1] == '^' ? 2 : 1;
    if (in->at[size] == ']')
        return refuse(in, size + 1);
    in->in_class = true;
    return take(in, size);
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
        return refuse(in, 1);
    default:
        return take(in, 1);
    }
}

char *pattern_translate(const char *expression, struct error *err)
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

/* flags.c - reads flags with getopt_long() from the tables; and looks for the flag that was meant
 * among names, other cases of a letter, and names that are written with one dash. */
#include "common/base/flags.h"

#include "common/base/text.h"
#include "common/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS_MAX 64
#define VALUE_BASE 256 /* getopt's value of the first flag: beyond all letters */
#define NAME_SIZE 64
/* Two letters are more likely to be two flags than a misspelt name. */
#define GUESSED_LENGTH_MIN 3

#define TIME_S_MAX (500 * 3600.0) /* its milliseconds fit into an int */
#define SIZE_LEAST 0x1p20
#define SIZE_GREATEST 0x1p50

/* Values. */

static int read_number(const struct flag *flag, const char *text, int64_t *out, struct error *err)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool whole = end != text && !*end && !errno && number >= flag->least;
    if (flag->greatest && (!whole || number > flag->greatest))
        return error_set(err, -EINVAL, "--%s '%s' must be a whole number, %lld to %lld", flag->name,
                         text, (long long)flag->least, (long long)flag->greatest);
    if (!whole)
        return error_set(err, -EINVAL, "--%s '%s' must be a whole number, at least %lld",
                         flag->name, text, (long long)flag->least);
    *out = number;
    return 0;
}

static int read_integer(const struct flag *flag, const char *text, int *out, struct error *err)
{
    struct flag bounded = *flag;
    int64_t number;
    if (!bounded.greatest)
        bounded.greatest = INT_MAX;
    int rc = read_number(&bounded, text, &number, err);
    if (rc == 0)
        *out = (int)number;
    return rc;
}

static int read_real(const struct flag *flag, const char *text, double *out, struct error *err)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end)
        return error_set(err, -EINVAL, "--%s '%s' must be a number", flag->name, text);
    *out = number;
    return 0;
}

/* Zero is refused because it stands for a missing flag. */
static int read_time(const struct flag *flag, const char *text, double *out, struct error *err)
{
    double seconds, most = flag->greatest ? (double)flag->greatest : TIME_S_MAX;
    int rc = units_parse(UNITS_SECONDS, text, &seconds, err);
    if (rc < 0)
        return error_prefix(err, rc, "--%s", flag->name);
    if (seconds <= 0 || seconds > most)
        return error_set(err, -EINVAL, "--%s '%s' must be more than zero, and at most %.0fh",
                         flag->name, text, most / 3600);
    *out = seconds;
    return 0;
}

static int read_size(const struct flag *flag, const char *text, uint64_t *out, struct error *err)
{
    double bytes;
    int rc = units_parse(UNITS_BYTES, text, &bytes, err);
    if (rc < 0)
        return error_prefix(err, rc, "--%s", flag->name);
    if (bytes < SIZE_LEAST || bytes > SIZE_GREATEST)
        return error_set(err, -EINVAL, "--%s '%s' must be a size with its unit, 1MiB to 1024TiB",
                         flag->name, text);
    *out = (uint64_t)bytes;
    return 0;
}

int flags_read_word(const struct flag *flag, const char *text, int *out, struct error *err)
{
    size_t used = 0;
    char known[256] = "";
    for (int i = 0; flag->words[i]; i++) {
        if (strcmp(flag->words[i], text) == 0) {
            *out = i;
            return 0;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     flag->words[i]);
    }
    return error_set(err, -EINVAL, "--%s '%s' is unknown; known: %s", flag->name, text, known);
}

/* Read text, NULL where the flag takes no value, into the member of `target` that the flag
 * describes. */
static int read_value(const struct flag *flag, const char *text, void *target, struct error *err)
{
    void *value = (char *)target + flag->offset;
    switch (flag->kind) {
    case FLAG_SWITCH:
        *(bool *)value = true;
        return 0;
    case FLAG_SET:
        *(int *)value = (int)flag->standard;
        return 0;
    case FLAG_TEXT:
        *(const char **)value = text;
        return 0;
    case FLAG_OPTION:
        *(const char **)value = text ? text : "";
        return 0;
    case FLAG_NUMBER:
        return read_number(flag, text, value, err);
    case FLAG_INTEGER:
        return read_integer(flag, text, value, err);
    case FLAG_REAL:
        return read_real(flag, text, value, err);
    case FLAG_TIME:
        return read_time(flag, text, value, err);
    case FLAG_SIZE:
        return read_size(flag, text, value, err);
    case FLAG_WORD:
        return flags_read_word(flag, text, value, err);
    }
    return 0;
}

/* The flags of one command line in the form getopt needs. */
struct reader {
    const struct flag *flags[FLAGS_MAX];
    struct flag_table *tables[FLAGS_MAX]; /* that the flag is of */
    struct option options[FLAGS_MAX + 1];
    char letters[2 * FLAGS_MAX + 3];
    size_t count;
    const char *help;
};

/* Whether a value follows it, as getopt has it. */
static int takes_value(const struct flag *flag)
{
    return flag->kind == FLAG_OPTION                             ? optional_argument
           : flag->kind == FLAG_SWITCH || flag->kind == FLAG_SET ? no_argument
                                                                 : required_argument;
}

static void reader_add(struct reader *reader, struct flag_table *table)
{
    size_t letter = strlen(reader->letters);
    table->given = 0;
    for (const struct flag *flag = table->flags; flag && flag->name && reader->count < FLAGS_MAX;
         flag++) {
        size_t i = reader->count++;
        reader->flags[i] = flag;
        reader->tables[i] = table;
        if (flag->kind == FLAG_NUMBER)
            *(int64_t *)((char *)table->target + flag->offset) = flag->standard;
        reader->options[i] =
            (struct option){flag->name, takes_value(flag), NULL, VALUE_BASE + (int)i};
        if (!flag->letter)
            continue;
        reader->letters[letter++] = flag->letter;
        if (takes_value(flag) == required_argument)
            reader->letters[letter++] = ':';
    }
}

/* The flag for which getopt has returned this: its number, or a letter, of which it returns only
 * those that it was given. */
static size_t reader_find(const struct reader *reader, int result)
{
    size_t i = 0;
    if (result >= VALUE_BASE)
        return (size_t)(result - VALUE_BASE);
    while (i + 1 < reader->count && reader->flags[i]->letter != result)
        i++;
    return i;
}

/* What is wrong with a flag. */

/* The word that getopt reads from next, "" at the end; getopt itself does not tell. */
static const char *next_word(int argc, char **argv)
{
    /* getopt passes over arguments, which have no dash */
    for (int i = optind > 0 ? optind : 1; i < argc; i++)
        if (argv[i][0] == '-' && argv[i][1])
            return argv[i];
    return "";
}

/* The name in a word, without dashes and without its value. */
static const char *name_of(const char *word, char *out)
{
    word += strspn(word, "-");
    snprintf(out, NAME_SIZE, "%.*s", (int)strcspn(word, "="), word);
    return out;
}

static const char *nearest_name(const struct reader *reader, const char *name)
{
    const char *words[FLAGS_MAX];
    for (size_t i = 0; i < reader->count; i++)
        words[i] = reader->flags[i]->name;
    return text_nearest(name, words, reader->count);
}

/* How many names begin like this; one that is equal is the only one, as getopt has it. */
static size_t count_begun(const struct reader *reader, const char *name)
{
    size_t begun = 0;
    for (size_t i = 0; i < reader->count; i++) {
        if (strcmp(reader->flags[i]->name, name) == 0)
            return 1;
        begun += strncmp(reader->flags[i]->name, name, strlen(name)) == 0;
    }
    return begun;
}

/* Whether the word is a flag's name with one dash too few, as in "-quiet" or "-file=job.yaml". */
static bool lacks_dash(const struct reader *reader, const char *word)
{
    char name[NAME_SIZE];
    if (word[0] != '-' || word[1] == '-' || strlen(name_of(word, name)) < 2)
        return false;
    for (size_t i = 0; i < reader->count; i++)
        if (strcmp(reader->flags[i]->name, name) == 0)
            return true;
    return false;
}

/* A word such as "--rnak=3". */
static int refuse_name(const struct reader *reader, const char *word, struct error *err)
{
    char name[NAME_SIZE];
    if (!*name_of(word, name))
        return error_set(err, -EINVAL, "'%s' names no flag; %s", word, reader->help);
    size_t begun = count_begun(reader, name);
    if (begun > 1)
        return error_set(err, -EINVAL, "--%s is the beginning of more than one flag; write it out",
                         name);
    if (begun == 1)
        return error_set(err, -EINVAL, "--%s takes no value", name);
    const char *meant = nearest_name(reader, name);
    if (meant)
        return error_set(err, -EINVAL, "unknown flag --%s; did you mean --%s?", name, meant);
    return error_set(err, -EINVAL, "unknown flag --%s; %s", name, reader->help);
}

/* The same letter, small instead of large or the other way round; 0: that is no flag either. */
static char other_case(const struct reader *reader, char letter)
{
    unsigned char c = (unsigned char)letter;
    char other = (char)(isupper(c) ? tolower(c) : toupper(c));
    return isalpha(c) && strchr(reader->letters, other) ? other : 0;
}

/* How many bytes the letter has in UTF-8. */
static int width_of(const char *letter)
{
    int width = 1;
    while (((unsigned char)letter[width] & 0xc0) == 0x80)
        width++;
    return width;
}

/* `letter` points into the word, such as "-ax", whose letters before it are known. */
static int refuse_letter(const struct reader *reader, const char *word, const char *letter,
                         struct error *err)
{
    char name[NAME_SIZE], what[2 * NAME_SIZE];
    int width = width_of(letter);
    if (*letter == '=' && letter > word + 1)
        return error_set(err, -EINVAL, "-%c takes no value, and '%s' has one", letter[-1], word);
    bool may_be_name = strlen(name_of(word, name)) >= GUESSED_LENGTH_MIN;
    const char *meant = lacks_dash(reader, word) ? name_of(word, name)
                        : may_be_name            ? nearest_name(reader, name)
                                                 : NULL;
    if (meant)
        return error_set(err, -EINVAL, "unknown flag -%s; did you mean --%s?", name, meant);
    if (word[1 + width])
        snprintf(what, sizeof what, "-%.*s in '%.64s'", width, letter, word);
    else
        snprintf(what, sizeof what, "-%.*s", width, letter);
    char other = other_case(reader, *letter);
    if (other)
        return error_set(err, -EINVAL, "unknown flag %s; did you mean -%c?", what, other);
    return error_set(err, -EINVAL, "unknown flag %s; %s", what, reader->help);
}

/* What getopt answered with '?' or ':', the latter for a value that is missing. */
static int flags_refuse(const struct reader *reader, int result, const char *word,
                        struct error *err)
{
    if (result == ':') {
        const struct flag *flag = reader->flags[reader_find(reader, optopt)];
        const char *value = flag->value ? flag->value : "a value";
        return optopt >= VALUE_BASE ? error_set(err, -EINVAL, "--%s needs %s", flag->name, value)
                                    : error_set(err, -EINVAL, "-%c needs %s", optopt, value);
    }
    if (word[0] == '-' && word[1] == '-')
        return refuse_name(reader, word, err);
    /* the first one: getopt has taken those before it */
    const char *letter = strchr(word + 1, optopt);
    return refuse_letter(reader, word, letter ? letter : word + 1, err);
}

int flags_read(struct flag_table *tables, size_t count, const char *help, bool leading, int argc,
               char **argv, int *next, struct error *err)
{
    struct reader reader = {.letters = ":", .help = help};
    int rc = 0;
    if (leading)
        strcpy(reader.letters, "+:");
    for (size_t i = 0; i < count; i++)
        reader_add(&reader, &tables[i]);
    opterr = 0;
    optind = 0; /* restarts glibc's getopt, which may have stopped within a word */
    while (rc == 0) {
        const char *word = next_word(argc, argv);
        int result = getopt_long(argc, argv, reader.letters, reader.options, NULL);
        if (result == -1)
            break;
        if (lacks_dash(&reader, word))
            rc = refuse_letter(&reader, word, word + 1, err);
        else if (result == '?' || result == ':')
            rc = flags_refuse(&reader, result, word, err);
        if (rc < 0)
            break;
        size_t index = reader_find(&reader, result);
        struct flag_table *table = reader.tables[index];
        table->given |= UINT64_C(1) << (reader.flags[index] - table->flags);
        rc = read_value(reader.flags[index], optarg, table->target, err);
    }
    *next = optind;
    return rc;
}

#define FLAGS_LEFT 26 /* columns for the flag and its value */
#define FLAGS_COLUMNS 100

void flags_print(const struct flag *flag, FILE *out)
{
    char left[64], letter[8] = "   ";
    if (flag->letter)
        snprintf(letter, sizeof letter, "-%c,", flag->letter);
    bool optional = flag->kind == FLAG_OPTION;
    snprintf(left, sizeof left, "%s --%s%s%s%s", letter, flag->name,
             optional      ? "[="
             : flag->value ? " "
                           : "",
             flag->value ? flag->value : "", optional ? "]" : "");
    fprintf(out, "  %-*s", FLAGS_LEFT, left);
    int column = 2 + (int)strlen(left);
    for (const char *word = flag->help, *end; *word; word = end + strspn(end, " ")) {
        end = word + strcspn(word, " ");
        bool first = word == flag->help, fits = column + 1 + (end - word) <= FLAGS_COLUMNS;
        if (first ? column > 2 + FLAGS_LEFT : !fits)
            fprintf(out, "\n%*s", FLAGS_LEFT + 2, "");
        if (first || !fits)
            column = FLAGS_LEFT + 2;
        column += fprintf(out, " %.*s", (int)(end - word), word);
    }
    fputc('\n', out);
}

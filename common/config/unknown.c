/* unknown.c - looks for the flag that was meant among names, other cases of a letter, and names
 * that are written with one dash. */
#include "common/config/unknown.h"

#include "common/base/memory.h"
#include "common/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 64
/* Two letters are more likely to be two flags than a misspelt name. */
#define GUESSED_LENGTH_MIN 3

/* The name in a word, without dashes and without its value. */
static const char *name_of(const char *word, char *out)
{
    word += strspn(word, "-");
    snprintf(out, NAME_SIZE, "%.*s", (int)strcspn(word, "="), word);
    return out;
}

static size_t count_names(const struct known_flags *known)
{
    size_t count = 0;
    while (known->options[count].name)
        count++;
    return count;
}

static const char *nearest(const struct known_flags *known, const char *name)
{
    size_t count = count_names(known);
    const char **words = xcalloc(count + 1, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = known->options[i].name;
    const char *found = text_nearest(name, words, count);
    free(words);
    return found;
}

/* How many names begin like this; one that is equal is the only one, as getopt has it. */
static size_t count_begun(const struct known_flags *known, const char *name)
{
    size_t begun = 0;
    for (const struct option *option = known->options; option->name; option++) {
        if (strcmp(option->name, name) == 0)
            return 1;
        begun += strncmp(option->name, name, strlen(name)) == 0;
    }
    return begun;
}

const char *unknown_next_word(int argc, char **argv)
{
    /* getopt passes over arguments, which have no dash */
    for (int i = optind > 0 ? optind : 1; i < argc; i++)
        if (argv[i][0] == '-' && argv[i][1])
            return argv[i];
    return "";
}

bool unknown_dash(const struct known_flags *known, const char *word)
{
    char name[NAME_SIZE];
    if (word[0] != '-' || word[1] == '-' || strlen(name_of(word, name)) < 2)
        return false;
    for (const struct option *option = known->options; option->name; option++)
        if (strcmp(option->name, name) == 0)
            return true;
    return false;
}

/* A word such as "--rnak=3". */
static int refuse_name(const struct known_flags *known, int result, const char *word,
                       struct error *err)
{
    char name[NAME_SIZE];
    if (!*name_of(word, name))
        return error_set(err, -EINVAL, "'%s' names no flag; %s", word, known->help);
    size_t begun = count_begun(known, name);
    if (begun > 1)
        return error_set(err, -EINVAL, "--%s is the beginning of more than one flag; write it out",
                         name);
    if (begun == 1)
        return error_set(err, -EINVAL, "--%s %s", name,
                         result == ':' ? "needs a value" : "takes no value");
    const char *meant = nearest(known, name);
    if (meant)
        return error_set(err, -EINVAL, "unknown flag --%s; did you mean --%s?", name, meant);
    return error_set(err, -EINVAL, "unknown flag --%s; %s", name, known->help);
}

int unknown_refuse(const struct known_flags *known, int result, const char *word, struct error *err)
{
    if (word[0] == '-' && word[1] == '-')
        return refuse_name(known, result, word, err);
    if (result == ':')
        return error_set(err, -EINVAL, "-%c needs a value", optopt);
    /* the first one: getopt has taken those before it */
    const char *letter = strchr(word + 1, optopt);
    return unknown_letter(known, word, letter ? letter : word + 1, err);
}

/* The same letter, small instead of large or the other way round; 0: that is no flag either. */
static char other_case(const struct known_flags *known, char letter)
{
    unsigned char c = (unsigned char)letter;
    char other = (char)(isupper(c) ? tolower(c) : toupper(c));
    return isalpha(c) && strchr(known->letters, other) ? other : 0;
}

/* How many bytes the letter has in UTF-8. */
static int width_of(const char *letter)
{
    int width = 1;
    while (((unsigned char)letter[width] & 0xc0) == 0x80)
        width++;
    return width;
}

int unknown_letter(const struct known_flags *known, const char *word, const char *letter,
                   struct error *err)
{
    char name[NAME_SIZE], what[2 * NAME_SIZE];
    int width = width_of(letter);
    if (*letter == '=' && letter > word + 1)
        return error_set(err, -EINVAL, "-%c takes no value, and '%s' has one", letter[-1], word);
    bool may_be_name = strlen(name_of(word, name)) >= GUESSED_LENGTH_MIN;
    const char *meant = unknown_dash(known, word) ? name_of(word, name)
                        : may_be_name             ? nearest(known, name)
                                                  : NULL;
    if (meant)
        return error_set(err, -EINVAL, "unknown flag -%s; did you mean --%s?", name, meant);
    if (word[1 + width])
        snprintf(what, sizeof what, "-%.*s in '%.64s'", width, letter, word);
    else
        snprintf(what, sizeof what, "-%.*s", width, letter);
    char other = other_case(known, *letter);
    if (other)
        return error_set(err, -EINVAL, "unknown flag %s; did you mean -%c?", what, other);
    return error_set(err, -EINVAL, "unknown flag %s; %s", what, known->help);
}

/* unknown.c - looks for the flag that was meant among names, other cases of a letter, and names
 * that are written with one dash. */
#include "coordinator/cli/unknown.h"

#include "common/base/memory.h"
#include "common/config/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 64
#define GUESSED_LENGTH_MIN 3 /* two letters are more likely to be two flags than a misspelt name   \
                              */

/* The name in a word, without dashes and without its value. */
static const char *name_of(const char *word, char *out)
{
    word += strspn(word, "-");
    snprintf(out, NAME_SIZE, "%.*s", (int)strcspn(word, "="), word);
    return out;
}

static const char *nearest(const struct known_flags *known, const char *name)
{
    const char **words = xcalloc(known->count, sizeof *words);
    for (size_t i = 0; i < known->count; i++)
        words[i] = known->flags[i]->name;
    const char *found = nearest_word(name, words, known->count);
    free(words);
    return found;
}

/* "unknown flag WHAT; 'gimbal COMMAND -h' lists them" */
static int refer(const struct known_flags *known, const char *what, struct error *err)
{
    return error_set(err, -EINVAL, "unknown flag %s; 'gimbal %s%s-h' lists them", what,
                     known->command, *known->command ? " " : "");
}

const struct flag *unknown_dash(const struct known_flags *known, const char *word)
{
    char name[NAME_SIZE];
    if (word[0] != '-' || word[1] == '-' || strlen(name_of(word, name)) < 2)
        return NULL;
    for (size_t i = 0; i < known->count; i++)
        if (strcmp(known->flags[i]->name, name) == 0)
            return known->flags[i];
    return NULL;
}

int unknown_name(const struct known_flags *known, const char *word, struct error *err)
{
    char name[NAME_SIZE], what[NAME_SIZE + 2];
    size_t begun = 0, length = strlen(name_of(word, name));
    if (length == 0)
        return error_set(err, -EINVAL, "'%s' names no flag; 'gimbal %s%s-h' lists them", word,
                         known->command, *known->command ? " " : "");
    for (size_t i = 0; i < known->count; i++)
        begun += strncmp(known->flags[i]->name, name, length) == 0;
    if (begun > 1)
        return error_set(err, -EINVAL, "--%s is the beginning of more than one flag; write it out",
                         name);
    const char *meant = nearest(known, name);
    if (meant)
        return error_set(err, -EINVAL, "unknown flag --%s; did you mean --%s?", name, meant);
    snprintf(what, sizeof what, "--%s", name);
    return refer(known, what, err);
}

static bool has_letter(const struct known_flags *known, char letter)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->flags[i]->letter == letter)
            return true;
    return false;
}

/* The same letter, small instead of large or the other way round; 0: that is no flag either. */
static char other_case(const struct known_flags *known, char letter)
{
    unsigned char c = (unsigned char)letter;
    char other = (char)(isupper(c) ? tolower(c) : toupper(c));
    return isalpha(c) && has_letter(known, other) ? other : 0;
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
    const struct flag *dash = unknown_dash(known, word);
    const char *meant = dash ? dash->name : NULL;
    if (!meant && strlen(name_of(word, name)) >= GUESSED_LENGTH_MIN)
        meant = nearest(known, name);
    if (meant)
        return error_set(err, -EINVAL, "unknown flag -%s; did you mean --%s?", name_of(word, name),
                         meant);
    if (word[1 + width])
        snprintf(what, sizeof what, "-%.*s in '%.64s'", width, letter, word);
    else
        snprintf(what, sizeof what, "-%.*s", width, letter);
    char other = other_case(known, *letter);
    if (other)
        return error_set(err, -EINVAL, "unknown flag %s; did you mean -%c?", what, other);
    return refer(known, what, err);
}

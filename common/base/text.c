/* text.c - walks UTF-8 character by character, runs of ASCII eight bytes at a time; and computes
 * edit distances by dynamic programming over three rows of the table. */
#include "common/base/text.h"

#include "common/base/memory.h"

#include <stdint.h>
#include <string.h>

#define LETTERS_MAX 63 /* of words whose distance is computed */

/* The length of a sequence with this lead byte; 0 if it is not a lead byte. */
static size_t sequence_size(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead < 0xe0)
        return 2;
    if (lead >= 0xe0 && lead < 0xf0)
        return 3;
    return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

size_t text_size(const void *text, size_t left)
{
    const unsigned char *at = text;
    size_t size = left > 0 ? sequence_size(at[0]) : 0;
    if (size > left)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if (size < 3)
        return size;
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool outside = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
    return overlong || outside ? 0 : size;
}

/* Most text is ASCII, of which eight characters are checked at once. */
bool text_valid(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        uint64_t eight;
        size_t size = sizeof eight;
        if (left >= size)
            memcpy(&eight, text, size);
        if (left < size || eight & 0x8080808080808080)
            size = text_size(text, left);
        if (size == 0)
            return false;
        text += size;
        left -= size;
    }
    return true;
}

size_t text_cut(const void *text, size_t size)
{
    const unsigned char *end = (const unsigned char *)text + size;
    for (size_t back = 1; back <= 3 && back <= size; back++)
        if ((end[-back] & 0xc0) != 0x80)
            return sequence_size(end[-back]) > back ? back : 0;
    return 0;
}

void text_mend(char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t size = text_size(text, left);
        if (size == 0) {
            *text = '?';
            size = 1;
        }
        text += size;
        left -= size;
    }
}

/* Is this character a control character, which a terminal may take for a command? */
static bool is_control(const unsigned char *at, size_t length)
{
    return (length == 1 && (at[0] < ' ' || at[0] == 127)) ||
           (length == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}

/* Drops an incomplete character at the end. */
static void drop_cut_character(char *text)
{
    size_t length = strlen(text), begin = length;
    while (begin > 0 && ((unsigned char)text[begin - 1] & 0xc0) == 0x80)
        begin--;
    if (begin > 0 && sequence_size((unsigned char)text[begin - 1]) > length - (begin - 1))
        text[begin - 1] = '\0';
}

/* Replaces invalid bytes, and control characters except those in `kept`, by '?'. */
static void replace_unsafe(char *text, size_t size, const char *kept)
{
    for (size_t i = 0, length; i < size; i += length ? length : 1) {
        length = text_size(&text[i], size - i);
        bool control = is_control((const unsigned char *)&text[i], length);
        if (length == 0 || (control && !(text[i] && strchr(kept, text[i]))))
            memset(&text[i], '?', length ? length : 1);
    }
}

void text_tame(char *text)
{
    drop_cut_character(text);
    replace_unsafe(text, strlen(text), "");
}

char *text_clean(const void *bytes, size_t size)
{
    char *text = xcalloc(size + 1, 1);
    if (size > 0)
        memcpy(text, bytes, size);
    replace_unsafe(text, size, "\n\t");
    return text;
}

/* An ASCII letter or digit, whatever the locale. */
static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool text_is_name(const char *text)
{
    if (!is_alphanumeric(text[0]))
        return false;
    size_t length = 0;
    for (; text[length]; length++)
        if (!is_alphanumeric(text[length]) && !strchr(".-_", text[length]))
            return false;
    return length < TEXT_NAME_SIZE;
}

static size_t text_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment; for words longer than LETTERS_MAX, the length of the longer one. */
static size_t edit_distance(const char *one, const char *other)
{
    size_t rows = strlen(one), columns = strlen(other);
    if (rows > LETTERS_MAX || columns > LETTERS_MAX)
        return rows > columns ? rows : columns;
    size_t before[LETTERS_MAX + 1] = {0}, above[LETTERS_MAX + 1], row[LETTERS_MAX + 1];
    for (size_t j = 0; j <= columns; j++)
        above[j] = j;
    for (size_t i = 1; i <= rows; i++) {
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t replaced = above[j - 1] + (one[i - 1] != other[j - 1]);
            row[j] = text_least(replaced, text_least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                row[j] = text_least(row[j], before[j - 2] + 1);
        }
        memcpy(before, above, sizeof before);
        memcpy(above, row, sizeof above);
    }
    return above[columns];
}

const char *text_nearest(const char *word, const char *const *words, size_t count)
{
    size_t letters = strlen(word);
    size_t bound = letters < 6 ? 1 : letters / 3;
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, words[i]);
        if (distance > bound || (found && distance == bound))
            continue;
        found = words[i];
        bound = distance;
    }
    return found;
}

/* alphabet.c - bytes as characters, and back. */
#include "worker/tokenizer/alphabet.h"

#define LATIN 256

static bool prints(int byte)
{
    return (byte > ' ' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

/* How many bytes below this one are not printable. */
static int rank_of(int byte)
{
    int rank = 0;
    for (int below = 0; below < byte; below++)
        rank += !prints(below);
    return rank;
}

void alphabet_print(int byte, char out[3])
{
    int code = prints(byte) ? byte : LATIN + rank_of(byte), length = 0;
    if (code < 0x80) {
        out[length++] = (char)code;
    } else {
        out[length++] = (char)(0xc0 | code >> 6);
        out[length++] = (char)(0x80 | (code & 0x3f));
    }
    out[length] = '\0';
}

/* The byte that a character stands for; -1: it is none of the alphabet. */
static int byte_of(int code)
{
    if (code < LATIN)
        return prints(code) ? code : -1;
    /* Not printable are 0 .. 32, 127 .. 160 and 173. */
    int rank = code - LATIN;
    return rank <= ' ' ? rank : rank <= 66 ? rank - 33 + 127 : rank == 67 ? 0xad : -1;
}

long alphabet_read(const char *text, size_t size, char *out)
{
    long count = 0;
    for (size_t i = 0; i < size; i++) {
        int code = (unsigned char)text[i];
        if (code >= 0x80) {
            if ((code & 0xe0) != 0xc0 || i + 1 == size)
                return -1;
            code = (code & 0x1f) << 6 | ((unsigned char)text[++i] & 0x3f);
        }
        int byte = byte_of(code);
        if (byte < 0)
            return -1;
        out[count++] = (char)byte;
    }
    return count;
}

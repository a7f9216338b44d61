/* nfc.c - utf8proc does it; where nothing can change it is not asked. */
#include "worker/tokenizer/nfc.h"

#include <stdbool.h>
#include <utf8proc.h>

size_t nfc_part(const char *text, size_t size)
{
    while (size > 0 && (unsigned char)text[--size] >= 0x80)
        ;
    return size;
}

/* All characters before U+0300 are composed already. Their first bytes are below 0xcc. */
static bool is_low(const char *text, size_t size)
{
    unsigned char most = 0;
    for (size_t i = 0; i < size; i++)
        most = (unsigned char)text[i] > most ? (unsigned char)text[i] : most;
    return most < 0xcc;
}

void nfc_append(struct byte_buffer *out, const char *text, size_t size)
{
    utf8proc_uint8_t *normal;
    if (is_low(text, size)) {
        byte_buffer_add(out, text, size);
        return;
    }
    utf8proc_ssize_t count = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size,
                                          &normal, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (count < 0) /* the text is valid: it has no memory */
        abort();
    byte_buffer_add(out, normal, (size_t)count);
    free(normal);
}

/* nfc.h - Unicode's normal form C, piece by piece. */
#ifndef WORKER_TOKENIZER_NFC_H
#define WORKER_TOKENIZER_NFC_H

#include "worker/tokenizer/byte_buffer.h"

/* How much of a text, valid UTF-8, can be normalized by itself whatever follows it: up to its last
 * ASCII character, which composes with nothing before it. */
size_t nfc_part(const char *text, size_t size);
/* Append the normal form of such a part, or of the last one. */
void nfc_append(struct byte_buffer *out, const char *text, size_t size);

#endif

/* tokenizer.h - the tokenizer of a model whose tokens are bytes. */
#ifndef WORKER_EXPORT_TOKENIZER_H
#define WORKER_EXPORT_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

/* tokenizer.json as the package tokenizers reads it, in which token N is byte N and, if `ends`,
 * token 256 the end of a text. The caller frees it. */
char *tokenizer_print(bool ends);
/* tokenizer_config.json for texts of at most `seq` tokens. The caller frees it. */
char *tokenizer_print_config(int64_t seq, bool ends);

#endif

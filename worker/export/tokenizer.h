/* tokenizer.h - the tokenizer of a model whose tokens are bytes. */
#ifndef WORKER_EXPORT_TOKENIZER_H
#define WORKER_EXPORT_TOKENIZER_H

#include <stdint.h>

/* tokenizer.json as the package tokenizers reads it, yours: token N is the byte N. */
char *tokenizer_print(void);
/* tokenizer_config.json for texts of at most `seq` tokens, yours. */
char *tokenizer_print_config(int64_t seq);

#endif

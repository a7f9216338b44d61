/* tokenizer.h - the tokenizer of a model whose tokens are bytes. */
#ifndef WORKER_EXPORT_TOKENIZER_H
#define WORKER_EXPORT_TOKENIZER_H

#include <stdint.h>

/* tokenizer.json as the package tokenizers reads it, in which token N is byte N. The caller frees
 * it. */
char *tokenizer_print(void);
/* tokenizer_config.json for texts of at most `seq` tokens. The caller frees it. */
char *tokenizer_print_config(int64_t seq);

#endif

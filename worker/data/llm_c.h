/* llm_c.h - files of token ids in the format of llm.c (dev/data/data_common.py there), which
 * 'gimbal data pack' writes too.
 *
 * The header has 256 little-endian int32: magic, version, number of tokens, zeros. The tokens
 * follow, little-endian, with 16 bits each (GPT-2's vocabulary) or 32 (Llama 3's), as the magic
 * says. */
#ifndef WORKER_DATA_LLM_C_H
#define WORKER_DATA_LLM_C_H

#include <stddef.h>
#include <stdint.h>

#define LLM_C_HEADER_SIZE 1024
/* The most tokens that a header can count. */
#define LLM_C_TOKENS_MAX ((uint64_t)INT32_MAX)

/* The header of a file of `count` tokens of 2 or 4 bytes each. */
void llm_c_header(uint64_t count, size_t width, unsigned char out[LLM_C_HEADER_SIZE]);

#endif

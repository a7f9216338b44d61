/* tokenize.c - prints the ids of the text on standard input, one a line:
 *
 *     tokenize TOKENIZER PART
 *
 * The text comes in parts of so many bytes. What the tokens are in bytes goes to descriptor 3. */
#include "worker/tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

struct out {
    const struct tokenizer *tokenizer;
    FILE *bytes;
};

static int print(void *data, const int32_t *ids, size_t count, struct error *err)
{
    const struct out *out = data;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char *text = tokenizer_text(out->tokenizer, ids[i], &size);
        printf("%d\n", ids[i]);
        fwrite(text, 1, size, out->bytes);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct error err = {""};
    struct tokenizer *tokenizer = NULL;
    struct out out = {.bytes = fdopen(3, "w")};
    size_t part = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, count;
    int rc = part && out.bytes ? tokenizer_open(argv[1], &tokenizer, &err)
                               : error_set(&err, -1, "usage: tokenize TOKENIZER PART 3>BYTES");
    if (rc == 0) {
        out.tokenizer = tokenizer;
        struct encoder *encoder = encoder_create(tokenizer, print, &out);
        char *bytes = malloc(part);
        while (rc == 0 && (count = fread(bytes, 1, part, stdin)))
            rc = encoder_add(encoder, bytes, count, &err);
        if (rc == 0)
            rc = encoder_end(encoder, &err);
        free(bytes);
        encoder_destroy(encoder);
    }
    tokenizer_close(tokenizer);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    return rc < 0 || fclose(out.bytes) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

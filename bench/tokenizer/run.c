/* run.c - the program of ./dev bench tokenizer [TOKENIZER TEXT]: how fast texts are encoded, on one
 * core. By default the tokenizers of the tests, which have 700 tokens, and the texts of fortunes;
 * a tokenizer of a real model makes fewer, longer tokens. */
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/memory.h"
#include "worker/data/files.h"
#include "worker/tokenizer/tokenizer.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT "/usr/share/games/fortunes/cookie"
#define ROUNDS 5
#define ROUND_S 0.5

static void need(int rc, const struct error *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(EXIT_FAILURE);
}

static int count(void *data, const int32_t *ids, size_t size, struct error *err)
{
    (void)ids;
    (void)err;
    *(size_t *)data += size;
    return 0;
}

static int encode(struct encoder *encoder, const struct file *text, struct error *err)
{
    int rc = encoder_add(encoder, text->map, text->size, err);
    return rc == 0 ? encoder_end(encoder, err) : rc;
}

/* Encode the text again and again for a while; returns bytes per second. */
static double measure(struct encoder *encoder, const struct file *text)
{
    struct error err = {""};
    double start = clock_s(), now = start, bytes = 0;
    for (; now - start < ROUND_S; now = clock_s(), bytes += (double)text->size)
        need(encode(encoder, text, &err), &err);
    return bytes / (now - start);
}

static void run_one(const char *name, const char *path, const struct file *text)
{
    struct tokenizer *tokenizer;
    struct error err = {""};
    size_t tokens = 0;
    double best = 0, worst = 0, start = clock_s(), opened_s;
    need(tokenizer_open(path, &tokenizer, &err), &err);
    opened_s = clock_s() - start;
    struct encoder *encoder = encoder_create(tokenizer, count, &tokens);
    need(encode(encoder, text, &err), &err);
    double per_token = (double)text->size / (double)(tokens ? tokens : 1);
    for (int i = 0; i < ROUNDS; i++) {
        double speed = measure(encoder, text);
        best = speed > best ? speed : best;
        worst = i == 0 || speed < worst ? speed : worst;
    }
    printf("bench tokenizer/%s %.1f MB/s  # best of %d, worst %.1f; %.2f bytes a token, %lld "
           "tokens read in %.0f ms\n",
           name, best * 1e-6, ROUNDS, worst * 1e-6, per_token, (long long)tokenizer_size(tokenizer),
           1e3 * opened_s);
    encoder_destroy(encoder);
    tokenizer_close(tokenizer);
}

int main(int argc, char **argv)
{
    static const char *const shapes[] = {"gpt2", "llama3", "qwen"};
    struct error err = {""};
    struct file text;
    need(file_map(argc > 2 ? argv[2] : TEXT, &text, &err), &err);
    if (argc > 2)
        run_one(basename(argv[1]), argv[1], &text);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && argc <= 2; i++) {
        char *path = xasprintf(RECORDED "/%s.json", shapes[i]);
        run_one(shapes[i], path, &text);
        free(path);
    }
    file_unmap(&text);
    printf("bench tokenizer done\n");
    return EXIT_SUCCESS;
}

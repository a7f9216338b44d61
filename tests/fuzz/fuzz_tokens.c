/* fuzz_tokens.c - files of tokens: of what is taken, all tokens lie in the file.
 *
 * The input is a file of its own, and then the index of a .bin as long as most indexes of the
 * corpus say. */
#include "tests/fuzz/targets.h"

#include "common/base/memory.h"
#include "worker/data/tokens.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BIN_SIZE 40

static char folder[] = "/tmp/gimbal-fuzz-XXXXXX";
static pid_t owner; /* of the folder; 0: there is none */

static void expect(bool right, const char *words)
{
    if (right)
        return;
    fprintf(stderr, "fuzz tokens: %s\n", words);
    abort();
}

static void remove_files(void)
{
    static const char *const names[] = {"alone", "a.idx", "a.bin"};
    if (getpid() != owner)
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = xasprintf("%s/%s", folder, names[i]);
        unlink(path);
        free(path);
    }
    rmdir(folder);
}

static char *write_file(const char *name, const void *bytes, size_t size)
{
    char *path = xasprintf("%s/%s", folder, name);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    expect(descriptor >= 0 && write(descriptor, bytes, size) == (ssize_t)size, "cannot write");
    close(descriptor);
    return path;
}

static void read_file(char *path, enum job_format told)
{
    struct error err = {""};
    struct token_file file;
    const struct data_format *format;
    if (token_file_open(path, told, &file, &format, &err) == 0) {
        uint32_t smallest, largest;
        const unsigned char *end = file.elements.bytes + file.elements.count * file.elements.width;
        expect(end == (const unsigned char *)file.file.map + file.file.size,
               "its tokens do not end where the file ends");
        elements_range(file.elements, &smallest, &largest);
        expect(!file.elements.count || smallest <= largest, "it has no smallest token");
        expect(token_file_check(&file, (struct token_limit){(int64_t)largest + 1, "the largest"},
                                &err) == 0,
               err.text);
    } else {
        expect(err.text[0], "refused without a word");
    }
    token_file_finish(&file);
    free(path);
}

void fuzz_tokens_run(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    static const unsigned char bin[BIN_SIZE];
    (void)target;
    if (owner != getpid()) {
        expect(mkdtemp(folder) != NULL, "cannot make a folder");
        owner = getpid();
        atexit(remove_files);
    }
    read_file(write_file("alone", bytes, size), JOB_FORMAT_AUTO);
    read_file(write_file("alone", bytes, size), JOB_FORMAT_UINT16);
    read_file(write_file("alone", bytes, size), JOB_FORMAT_UINT32);
    free(write_file("a.bin", bin, sizeof bin));
    read_file(write_file("a.idx", bytes, size), JOB_FORMAT_AUTO);
}

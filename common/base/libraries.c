/* libraries.c - each library is asked by its own function, if this process is linked with it: by
 * name, so that one table serves all programs. */
#include "common/base/libraries.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum answer_kind {
    ANSWER_TEXT,   /* const char *f(void) */
    ANSWER_WRITES, /* void f(char *): at most 18 bytes, as mbed TLS has it */
    ANSWER_HEX,    /* unsigned f(void): 0x00020900 is 2.9.0 */
    ANSWER_TENS,   /* unsigned f(void): 801 is 0.8.1 */
    ANSWER_THREE,  /* const struct {int major, minor, patch; ...} *f(void) */
};

static const struct library {
    const char *name, *symbol;
    enum answer_kind kind;
} libraries[] = {
    {"glibc", "gnu_get_libc_version", ANSWER_TEXT},
    {"hwloc-interface", "hwloc_get_api_version", ANSWER_HEX},
    {"jansson", "jansson_version_str", ANSWER_TEXT},
    {"libmicrohttpd", "MHD_get_version", ANSWER_TEXT},
    {"libyaml", "yaml_get_version_string", ANSWER_TEXT},
    {"mbedtls", "mbedtls_version_get_string", ANSWER_WRITES},
    {"nng", "nng_version", ANSWER_TEXT},
    {"onednn", "dnnl_version", ANSWER_THREE},
    {"openblas", "openblas_get_config", ANSWER_TEXT},
    {"protobuf-c", "protobuf_c_version", ANSWER_TEXT},
    {"sqlite", "sqlite3_libversion", ANSWER_TEXT},
    {"xxhash", "XXH_versionNumber", ANSWER_TENS},
};

/* POSIX promises that a symbol's address may be called; C has no cast for it. */
static void ask(const struct library *library, void *symbol, char *out, size_t size)
{
    union {
        void *symbol;
        const char *(*text)(void);
        void (*writes)(char *);
        unsigned (*number)(void);
        const int *(*three)(void);
    } of = {symbol};
    char written[64] = "";
    unsigned number;
    switch (library->kind) {
    case ANSWER_TEXT:
        snprintf(out, size, "%s", of.text());
        break;
    case ANSWER_WRITES:
        of.writes(written);
        snprintf(out, size, "%s", written);
        break;
    case ANSWER_HEX:
        number = of.number();
        snprintf(out, size, "%u.%u.%u", number >> 16, number >> 8 & 0xff, number & 0xff);
        break;
    case ANSWER_TENS:
        number = of.number();
        snprintf(out, size, "%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
        break;
    case ANSWER_THREE: {
        const int *parts = of.three();
        snprintf(out, size, "%d.%d.%d", parts[0], parts[1], parts[2]);
        break;
    }
    }
}

void libraries_print(const char *release, FILE *out)
{
    fprintf(out, "release %s\n", release);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *symbol = dlsym(RTLD_DEFAULT, libraries[i].symbol);
        char version[256];
        if (!symbol)
            continue;
        ask(&libraries[i], symbol, version, sizeof version);
        version[strcspn(version, "\n")] = '\0';
        /* Some begin with their own name. */
        const char *text = version, *name = libraries[i].name;
        if (strncasecmp(text, name, strlen(name)) == 0 && text[strlen(name)] == ' ')
            text += strlen(name) + 1;
        fprintf(out, "%s %s\n", name, text);
    }
}

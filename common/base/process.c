/* process.c - the standard descriptors, limits, the heap, OpenMP's patience, and the versions of
 * libraries.
 *
 * Each library is asked by its own function, if this process is linked with it: by name, so that
 * one table serves all programs. */
#include "common/base/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#define KEPT_BYTES (64 << 20)       /* free at the heap's end before it shrinks */
#define MAPPED_BYTES_MIN (32 << 20) /* larger ones are mapped by themselves, and unmapped */

/* The lower ones are open by then, so each opens as the lowest free number, which is its own. */
void process_hold_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int useless = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", useless) < 0) {
            fprintf(stderr,
                    "descriptor %d is closed, and /dev/null cannot be opened in its place: %s\n",
                    fd, strerror(errno));
            exit(EX_IOERR);
        }
    }
}

void process_allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void process_keep_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
}

void process_spin_briefly(void)
{
    if (!getenv("OMP_WAIT_POLICY"))
        setenv("GOMP_SPINCOUNT", "3000", 0);
}

enum version_kind {
    VERSION_TEXT,   /* const char *f(void) */
    VERSION_WRITES, /* void f(char *): at most 18 bytes, as mbed TLS has it */
    VERSION_HEX,    /* unsigned f(void): 0x00020900 is 2.9.0 */
    VERSION_TENS,   /* unsigned f(void): 801 is 0.8.1 */
    VERSION_THREE,  /* const struct {int major, minor, patch; ...} *f(void) */
};

static const struct library {
    const char *name, *symbol;
    enum version_kind kind;
} libraries[] = {
    {"glibc", "gnu_get_libc_version", VERSION_TEXT},
    {"hwloc-interface", "hwloc_get_api_version", VERSION_HEX},
    {"jansson", "jansson_version_str", VERSION_TEXT},
    {"libmicrohttpd", "MHD_get_version", VERSION_TEXT},
    {"libyaml", "yaml_get_version_string", VERSION_TEXT},
    {"mbedtls", "mbedtls_version_get_string", VERSION_WRITES},
    {"nng", "nng_version", VERSION_TEXT},
    {"onednn", "dnnl_version", VERSION_THREE},
    {"openblas", "openblas_get_config", VERSION_TEXT},
    {"protobuf-c", "protobuf_c_version", VERSION_TEXT},
    {"sqlite", "sqlite3_libversion", VERSION_TEXT},
    {"xxhash", "XXH_versionNumber", VERSION_TENS},
};

/* POSIX promises that a symbol's address may be called; C has no cast for it. */
static void ask_version(const struct library *library, void *symbol, char *out, size_t size)
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
    case VERSION_TEXT:
        snprintf(out, size, "%s", of.text());
        break;
    case VERSION_WRITES:
        of.writes(written);
        snprintf(out, size, "%s", written);
        break;
    case VERSION_HEX:
        number = of.number();
        snprintf(out, size, "%u.%u.%u", number >> 16, number >> 8 & 0xff, number & 0xff);
        break;
    case VERSION_TENS:
        number = of.number();
        snprintf(out, size, "%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
        break;
    case VERSION_THREE: {
        const int *parts = of.three();
        snprintf(out, size, "%d.%d.%d", parts[0], parts[1], parts[2]);
        break;
    }
    }
}

void process_print_libraries(const char *release, FILE *out)
{
    fprintf(out, "release %s\n", release);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *symbol = dlsym(RTLD_DEFAULT, libraries[i].symbol);
        char version[256];
        if (!symbol)
            continue;
        ask_version(&libraries[i], symbol, version, sizeof version);
        version[strcspn(version, "\n")] = '\0';
        /* Some begin with their own name. */
        const char *text = version, *name = libraries[i].name;
        if (strncasecmp(text, name, strlen(name)) == 0 && text[strlen(name)] == ' ')
            text += strlen(name) + 1;
        fprintf(out, "%s %s\n", name, text);
    }
}

/* cache.c - the question to the cache of profiles: this host, its processor, and the programs that
 * would be measured.
 *
 * The latter are the objects that the dynamic linker has loaded: each is identified by the build id
 * in its ELF notes, or if it has none by its file. They include the vDSO, and so the kernel. */
#include "worker/probe/cache.h"

#include "common/base/clock.h"
#include "common/base/hash.h"

#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Notes are aligned to 4 bytes, whatever the alignment of their segment. */
static size_t aligned(size_t size)
{
    return (size + 3) & ~(size_t)3;
}

/* The hash of the build id among the notes; 0: there is none. */
static uint64_t hash_notes(const char *at, size_t size)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const char *name = at + sizeof note, *description = name + aligned(note.n_namesz);
        size_t whole = sizeof note + aligned(note.n_namesz) + aligned(note.n_descsz);
        if (whole > size)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0)
            return hash_bytes(HASH_START, description, note.n_descsz);
        at += whole;
        size -= whole;
    }
    return 0;
}

/* Path, size and time of modification. The linker gives the program itself an empty name. */
static uint64_t hash_object_file(const char *name)
{
    struct stat status = {0};
    if (stat(*name ? name : "/proc/self/exe", &status) < 0)
        return hash_text(HASH_START, name);
    uint64_t hash = hash_number(hash_text(HASH_START, name), (uint64_t)status.st_size);
    hash = hash_number(hash, (uint64_t)status.st_mtim.tv_sec);
    return hash_number(hash, (uint64_t)status.st_mtim.tv_nsec);
}

static int add_object(struct dl_phdr_info *object, size_t size, void *data)
{
    uint64_t *sum = data, hash = 0;
    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum && !hash; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        if (header->p_type == PT_NOTE)
            // NOLINTNEXTLINE(performance-no-int-to-ptr)
            hash = hash_notes((const char *)(object->dlpi_addr + header->p_vaddr), header->p_memsz);
    }
    *sum += hash ? hash : hash_object_file(object->dlpi_name);
    return 0;
}

/* The environment variables that set threads, and which of the processor's instructions may be
 * used. */
static uint64_t sum_words(void)
{
    static const char *const prefixes[] = {"OMP_",  "GOMP_",   "OPENBLAS_",
                                           "DNNL_", "ONEDNN_", "GIMBAL_CPU_"};
    uint64_t sum = 0;
    for (char **variable = environ; *variable; variable++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            if (strncmp(*variable, prefixes[i], strlen(prefixes[i])) == 0)
                sum += hash_text(HASH_START, *variable);
    return sum;
}

uint64_t loaded_hash(void)
{
    uint64_t sum = 0;
    dl_iterate_phdr(add_object, &sum);
    return hash_number(hash_number(HASH_START, sum), sum_words());
}

/* Read what follows the colon in the first line of the file that begins with `begin`; false: there
 * is no such line. */
static bool read_line(const char *path, const char *begin, char *out, size_t size)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strncmp(line, begin, strlen(begin)) == 0 ? strchr(line, ':') : NULL;
        if (!colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

/* Model and microcode version, because an update of microcode may slow instructions down. Linux
 * names them on x86; elsewhere the part number or the architecture has to do. */
static void name_processor(char *out, size_t size)
{
    static const char path[] = "/proc/cpuinfo";
    char model[128], microcode[64] = "";
    struct utsname system;
    if (!read_line(path, "model name", model, sizeof model) &&
        !read_line(path, "CPU part", model, sizeof model))
        snprintf(model, sizeof model, "%s", uname(&system) == 0 ? system.machine : "");
    bool has = read_line(path, "microcode", microcode, sizeof microcode);
    snprintf(out, size, has ? "%s, microcode %s" : "%s", model, microcode);
}

void probe_cache_ask(struct probe_cache *cache, const char *folder, const char *device,
                     const char *cpusets, const char *fabric, double crowd)
{
    *cache = (struct probe_cache){.folder = folder};
    gethostname(cache->host, sizeof cache->host - 1);
    name_processor(cache->processor, sizeof cache->processor);
    snprintf(cache->programs, sizeof cache->programs, "%016" PRIx64, loaded_hash());
    cache->question = (struct profile_question){.host = cache->host,
                                                .processor = cache->processor,
                                                .programs = cache->programs,
                                                .device = device,
                                                .cpusets = cpusets,
                                                .fabric = fabric,
                                                .crowd = crowd};
}

int probe_cache_find(const struct probe_cache *cache, struct profile_answer *out, struct error *err)
{
    return profile_cache_find(cache->folder, &cache->question, clock_unix_ms(), out, err);
}

int probe_cache_store(const struct probe_cache *cache, const struct profile_answer *answer,
                      struct error *err)
{
    return profile_cache_keep(cache->folder, &cache->question, answer, err);
}

/* kept.c - the question to the cache of profiles: this host, its processor, and the programs that
 * would be measured. */
#include "worker/probe/kept.h"

#include "common/base/clock.h"
#include "worker/probe/loaded.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

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

void probe_kept_ask(struct probe_kept *kept, const char *folder, const char *device,
                    const char *cpusets, const char *fabric, double crowd)
{
    *kept = (struct probe_kept){.folder = folder};
    gethostname(kept->host, sizeof kept->host - 1);
    name_processor(kept->processor, sizeof kept->processor);
    snprintf(kept->programs, sizeof kept->programs, "%016" PRIx64, loaded_hash());
    kept->question = (struct profile_question){.host = kept->host,
                                               .processor = kept->processor,
                                               .programs = kept->programs,
                                               .device = device,
                                               .cpusets = cpusets,
                                               .fabric = fabric,
                                               .crowd = crowd};
}

int probe_kept_find(const struct probe_kept *kept, struct profile_answer *out, struct error *err)
{
    return profile_cache_find(kept->folder, &kept->question, clock_unix_ms(), out, err);
}

int probe_kept_store(const struct probe_kept *kept, const struct profile_answer *answer,
                     struct error *err)
{
    return profile_cache_keep(kept->folder, &kept->question, answer, err);
}

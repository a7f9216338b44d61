/* cache.c - stores each question with its answer in a JSON file named by the hash of the question.
 *
 * The question is in the file as well, so that a hash collision or a renamed file is noticed. */
#include "common/profile/cache.h"

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIND "MeasuredDevices"
#define DIGITS "0123456789abcdef"

void profile_answer_finish(struct profile_answer *answer)
{
    free(answer->profiles);
    *answer = (struct profile_answer){0};
}

/* NULL when a text is not UTF-8. */
static json_t *encode_question(const struct profile_question *question)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "host", question->host, "processor",
                     question->processor, "programs", question->programs, "device",
                     question->device, "cpusets", question->cpusets, "fabric", question->fabric,
                     "crowd", question->crowd);
}

/* The texts are borrowed from the JSON. */
static int decode_question(json_t *json, struct profile_question *out, struct error *err)
{
    json_error_t where;
    if (json_unpack_ex(json, &where, 0, "{s:s, s:s, s:s, s:s, s:s, s:s, s:F}", "host", &out->host,
                       "processor", &out->processor, "programs", &out->programs, "device",
                       &out->device, "cpusets", &out->cpusets, "fabric", &out->fabric, "crowd",
                       &out->crowd) < 0)
        return error_set(err, -EINVAL, "question: %s", where.text);
    return 0;
}

static int name_question(const struct profile_question *question,
                         char name[static PROFILE_CACHE_NAME_SIZE], struct error *err)
{
    json_t *json = encode_question(question);
    if (!json)
        return error_set(err, -EINVAL, "what is to be measured has a name that is no UTF-8");
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    snprintf(name, PROFILE_CACHE_NAME_SIZE, "%016" PRIx64, hash_text(HASH_START, text));
    free(text);
    json_decref(json);
    return 0;
}

static char *path_of(const char *folder, const char *name)
{
    return xasprintf("%s/%s.json", folder, name);
}

static size_t count_sets(const char *cpusets)
{
    size_t count = 1;
    for (; *cpusets; cpusets++)
        count += *cpusets == ';';
    return count;
}

static int decode_profiles(const json_t *list, size_t wanted, struct profile_answer *out,
                           struct error *err)
{
    size_t count = json_array_size(list);
    int rc = 0;
    if (count != wanted)
        return error_set(err, -EINVAL, "it has %zu profiles of %zu devices", count, wanted);
    out->profiles = xcalloc(count, sizeof *out->profiles);
    for (; out->count < count && rc == 0; out->count++) {
        const char *text = json_string_value(json_array_get(list, out->count));
        rc = text ? profile_decode(text, &out->profiles[out->count], err)
                  : error_set(err, -EINVAL, "profiles[%zu] is no text", out->count);
    }
    return rc;
}

static int cache_decode(struct profile_kept *kept, struct error *err)
{
    const char *kind;
    json_t *question, *profiles;
    json_error_t where;
    json_int_t measured = 0;
    int busy = 0;
    if (json_unpack_ex(kept->file, &where, 0, "{s:s, s:I, s:b, s:o, s:o}", "kind", &kind,
                       "measured_unix_ms", &measured, "busy", &busy, "question", &question,
                       "profiles", &profiles) < 0)
        return error_set(err, -EINVAL, "%s", where.text);
    if (strcmp(kind, KIND) != 0 || measured <= 0)
        return error_set(err, -EINVAL, "it is no " KIND);
    int rc = decode_question(question, &kept->question, err);
    kept->answer.measured_unix_ms = (uint64_t)measured;
    kept->answer.busy = busy;
    if (rc == 0)
        rc = decode_profiles(profiles, count_sets(kept->question.cpusets), &kept->answer, err);
    return rc;
}

static void cache_finish(struct profile_kept *kept)
{
    profile_answer_finish(&kept->answer);
    json_decref(kept->file);
    kept->file = NULL;
}

/* -ENOENT when there is no such file. */
static int read_kept(const char *folder, const char *name, struct profile_kept *out,
                     struct error *err)
{
    char *text, *path = path_of(folder, name);
    json_error_t where;
    *out = (struct profile_kept){0};
    strcpy(out->name, name);
    int rc = file_read(path, &text, err);
    if (rc == 0) {
        out->file = json_loads(text, JSON_REJECT_DUPLICATES, &where);
        free(text);
        rc = out->file ? cache_decode(out, err) : error_set(err, -EINVAL, "%s", where.text);
        if (rc < 0)
            error_prefix(err, rc, "'%s' is no measurement", path);
    }
    free(path);
    if (rc < 0)
        cache_finish(out);
    return rc;
}

/* A measurement from the future comes from another clock, so its age is unknown: not young. */
static bool is_young(const struct profile_answer *answer, uint64_t now_unix_ms)
{
    uint64_t most_ms = answer->busy ? PROFILE_CACHE_BUSY_AGE_MS : PROFILE_CACHE_AGE_MS;
    return answer->measured_unix_ms <= now_unix_ms &&
           now_unix_ms - answer->measured_unix_ms <= most_ms;
}

static bool is_equal(const struct profile_question *a, const struct profile_question *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->processor, b->processor) == 0 &&
           strcmp(a->programs, b->programs) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->cpusets, b->cpusets) == 0 && strcmp(a->fabric, b->fabric) == 0 &&
           a->crowd == b->crowd;
}

int profile_cache_find(const char *folder, const struct profile_question *question,
                       uint64_t now_unix_ms, struct profile_answer *out, struct error *err)
{
    char name[PROFILE_CACHE_NAME_SIZE];
    struct profile_kept kept;
    int rc = name_question(question, name, err);
    if (rc == 0)
        rc = read_kept(folder, name, &kept, err);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return rc;
    bool ours = is_equal(&kept.question, question), young = is_young(&kept.answer, now_unix_ms);
    if (ours && young) {
        *out = kept.answer;
        kept.answer = (struct profile_answer){0};
    }
    cache_finish(&kept);
    if (!ours)
        return error_set(err, -EINVAL, "'%s/%s.json' is a measurement of something else", folder,
                         name);
    return young;
}

/* Is it a file of this module: 16 digits and ".json"? Or such a name with "." and a suffix, a draft
 * that a process left when it died? */
static bool is_ours(const char *name)
{
    size_t size = PROFILE_CACHE_NAME_SIZE - 1;
    return strspn(name, DIGITS) == size && strncmp(name + size, ".json", 5) == 0 &&
           (name[size + 5] == '\0' || name[size + 5] == '.');
}

/* Delete expired files, judged by their modification time, so that none has to be read. Files that
 * are gone by then were deleted by another process. */
static void remove_old(const char *folder, uint64_t now_unix_ms)
{
    DIR *directory = opendir(folder);
    struct stat status;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!is_ours(entry->d_name) ||
            fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        uint64_t written_ms = (uint64_t)status.st_mtime * 1000;
        if (written_ms < now_unix_ms && now_unix_ms - written_ms > PROFILE_CACHE_AGE_MS)
            unlinkat(dirfd(directory), entry->d_name, 0);
    }
    if (directory)
        closedir(directory);
}

static char *cache_encode(const struct profile_question *question,
                          const struct profile_answer *answer)
{
    json_t *profiles = json_array();
    for (size_t i = 0; i < answer->count; i++) {
        char *text = profile_encode(&answer->profiles[i]);
        json_array_append_new(profiles, json_string(text));
        free(text);
    }
    json_t *file =
        json_pack("{s:s, s:s, s:I, s:b, s:o, s:o}", "apiVersion", "gimbal/v1", "kind", KIND,
                  "measured_unix_ms", (json_int_t)answer->measured_unix_ms, "busy", answer->busy,
                  "question", encode_question(question), "profiles", profiles);
    char *text = json_dumps(file, JSON_INDENT(2));
    json_decref(file);
    return text;
}

int profile_cache_keep(const char *folder, const struct profile_question *question,
                       const struct profile_answer *answer, struct error *err)
{
    char name[PROFILE_CACHE_NAME_SIZE];
    int rc = name_question(question, name, err);
    if (rc == 0)
        rc = folder_make(folder, err);
    if (rc < 0)
        return rc;
    char *path = path_of(folder, name), *text = cache_encode(question, answer);
    rc = file_write(path, text, 0600, err);
    free(text);
    free(path);
    if (rc == 0)
        remove_old(folder, answer->measured_unix_ms);
    return rc;
}

/* Newest first. Damaged files have no time and come last. */
static int cache_compare(const void *a, const void *b)
{
    uint64_t first = ((const struct profile_kept *)a)->answer.measured_unix_ms,
             second = ((const struct profile_kept *)b)->answer.measured_unix_ms;
    return (first < second) - (first > second);
}

int profile_cache_list(const char *folder, uint64_t now_unix_ms, struct profile_kept **out,
                       size_t *count, struct error *err)
{
    struct profile_kept *all = NULL;
    size_t used = 0;
    DIR *directory = opendir(folder);
    *out = NULL;
    *count = 0;
    if (!directory)
        return errno == ENOENT ? 0
                               : error_set(err, -errno, "folder '%s': %s", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(directory));) {
        char name[PROFILE_CACHE_NAME_SIZE];
        struct profile_kept kept;
        struct error why;
        if (!is_ours(entry->d_name) || entry->d_name[PROFILE_CACHE_NAME_SIZE - 1 + 5] != '\0')
            continue;
        snprintf(name, sizeof name, "%s", entry->d_name);
        int rc = read_kept(folder, name, &kept, &why);
        if (rc == -ENOENT || (rc == 0 && !is_young(&kept.answer, now_unix_ms))) {
            cache_finish(&kept);
            continue;
        }
        kept.why = rc < 0 ? why : (struct error){""};
        all = xrealloc(all, (used + 1) * sizeof *all);
        all[used++] = kept;
    }
    closedir(directory);
    if (used > 0)
        qsort(all, used, sizeof *all, cache_compare);
    *out = all;
    *count = used;
    return 0;
}

void profile_cache_free(struct profile_kept *kept, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cache_finish(&kept[i]);
    free(kept);
}

/* machine.c - divides the cores, has an executor measure them, and looks at the folder of
 * checkpoints before a training. */
#include "coordinator/cli/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/checkpoint/ancestor.h"
#include "common/config/folders.h"
#include "common/config/paths.h"
#include "common/message/message.h"
#include "coordinator/cli/executor.h"
#include "coordinator/planning/alike.h"
#include "proto/executor.pb-c.h"

/* A probe takes a few seconds; one that takes this long hangs. */
#define PROBE_TIMEOUT_MS 120000
#define PATIENCE_MS 2000

/* Print the allowed cores number first to end - 1, as in "0-3,8". */
static void machine_print_set(const cpu_set_t *allowed, int first, int end, FILE *out)
{
    const char *comma = "";
    int nth = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && nth < end; cpu++) {
        if (!CPU_ISSET(cpu, allowed) || nth++ < first)
            continue;
        size_t last = cpu;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, allowed) && nth < end) {
            last++;
            nth++;
        }
        fprintf(out, last > cpu ? "%s%zu-%zu" : "%s%zu", comma, cpu, last);
        comma = ",";
        cpu = last;
    }
}

char *machine_cpusets(const cpu_set_t *allowed, int count)
{
    char *text = NULL;
    size_t size;
    int cores = CPU_COUNT(allowed);
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            fputc(';', out);
        if (cores < count)
            machine_print_set(allowed, i % cores, i % cores + 1, out);
        else
            machine_print_set(allowed, cores * i / count, cores * (i + 1) / count, out);
    }
    fclose(out);
    return text;
}

static uint64_t machine_read_number(const char *path, const char *format)
{
    char line[256];
    unsigned long long number = UINT64_MAX;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, format, &number) == 1)
            break;
    if (file)
        fclose(file);
    return number;
}

uint64_t machine_memory_bytes(void)
{
    uint64_t kib = machine_read_number("/proc/meminfo", "MemAvailable: %llu kB");
    uint64_t bytes = kib < UINT64_MAX / 1024 ? kib * 1024 : 0;
    uint64_t limit = machine_read_number("/sys/fs/cgroup/memory.max", "%llu"),
             used = machine_read_number("/sys/fs/cgroup/memory.current", "%llu");
    if (limit != UINT64_MAX && used != UINT64_MAX && limit > used && limit - used < bytes)
        bytes = limit - used;
    return bytes;
}

static int machine_take_profiles(const Gimbal__ExecutorProfile *from, struct machine *machine,
                                 struct error *err)
{
    if (from->n_device_json != (size_t)machine->count)
        return error_set(err, -EPROTO, "the probe measured %zu devices of %d", from->n_device_json,
                         machine->count);
    int rc = 0;
    for (int i = 0; i < machine->count && rc == 0; i++)
        rc = profile_decode(from->device_json[i], &machine->profiles[i], err);
    const char *names[MACHINE_DEVICES_MAX];
    for (int i = 0; i < machine->count; i++)
        names[i] = "local"; /* parts of one machine */
    if (rc == 0)
        profiles_level(machine->profiles, names, (size_t)machine->count);
    for (int i = 0; i < machine->count; i++)
        machine->devices[i].profile = profiles_first(machine->profiles, (size_t)i);
    bool own = from->memory_bytes > 0; /* otherwise it is the host's */
    for (int i = 0; i < machine->count && own; i++) {
        machine->devices[i].memory_bytes = from->memory_bytes / (uint64_t)machine->count;
        machine->devices[i].library_bytes = from->library_bytes;
    }
    machine->measured_unix_ms = from->measured_unix_ms;
    machine->kept = from->kept;
    machine->note = xstrdup(from->note);
    return rc;
}

/* Read events until the profile arrives; a fault arrives as a message instead. */
static int machine_read_profile(struct executor *executor, struct machine *machine,
                                struct error *err)
{
    for (;;) {
        Gimbal__ExecutorEvent *event;
        int rc = executor_read(executor, PROBE_TIMEOUT_MS, &event, err);
        if (rc == 0)
            return error_set(err, -ETIMEDOUT, "the probe has not answered within %d s",
                             PROBE_TIMEOUT_MS / 1000);
        if (rc < 0)
            return rc;
        bool done = true;
        if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE)
            rc = machine_take_profiles(event->profile, machine, err);
        else if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED)
            rc = error_set(
                err, event->stopped->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA ? -EINVAL : -EIO,
                "%s", event->stopped->reason);
        else
            done = false;
        message_free(&event->base);
        if (done)
            return rc < 0 ? rc : 0;
    }
}

char *machine_cache_folder(void)
{
    const char *given = getenv("GIMBAL_PROFILE_CACHE");
    return given && *given ? xstrdup(given) : cache_folder();
}

static int machine_start_probe(const struct machine *machine, bool measure,
                               struct executor *executor, struct error *err)
{
    char crowd[32], *folder;
    int rc = executor_begin(executor, err);
    if (rc < 0)
        return rc;
    snprintf(crowd, sizeof crowd, "%.6g",
             machine->cores < machine->count ? (double)machine->count / machine->cores : 1);
    folder = machine_cache_folder(); /* NULL: the measurement is not kept */
    executor_word(executor, "--probe");
    executor_flag(executor, "--devices", machine->cpusets);
    executor_flag(executor, "--fabric", "local");
    executor_flag(executor, "--crowd", crowd);
    executor_flag(executor, "--sentences", "warn");
    executor_flag(executor, "--device", machine->device);
    executor_flag(executor, "--kept", folder);
    if (measure)
        executor_word(executor, "--measure");
    free(folder);
    return executor_start(executor, STDERR_FILENO, STDERR_FILENO, err);
}

static int machine_probe(struct machine *machine, bool measure, struct error *err)
{
    char end[64];
    struct executor executor;
    int rc = machine_start_probe(machine, measure, &executor, err);
    if (rc == 0)
        rc = machine_read_profile(&executor, machine, err);
    channel_close(&executor.channel);
    if (rc == -EPIPE && process_wait(&executor.process, PATIENCE_MS))
        error_set(err, -EIO, "the probe reported nothing: %s",
                  process_print_end(&executor.process, end, sizeof end));
    process_stop(&executor.process, PATIENCE_MS);
    executor_finish(&executor);
    return rc < 0 ? error_prefix(err, rc, "measure this machine") : 0;
}

/* Where there are more devices than cores, each is told which it has: `cpusets` has one set for
 * each. */
static void machine_name_cores(struct machine *machine)
{
    const char *set = machine->cpusets;
    for (int i = 0; i < machine->count && !machine->device && machine->cores < machine->count;
         i++) {
        size_t length = strcspn(set, ";");
        machine->devices[i].cores = xasprintf("%.*s", (int)length, set);
        set += length + (set[length] == ';');
    }
}

int machine_open(int count, const char *device, bool measure, struct machine *machine,
                 struct error *err)
{
    cpu_set_t allowed;
    *machine = (struct machine){.count = count, .device = device};
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return error_set(err, -errno, "sched_getaffinity: %s", strerror(errno));
    machine->devices = xcalloc((size_t)count, sizeof *machine->devices);
    machine->profiles = xcalloc((size_t)count, sizeof *machine->profiles);
    machine->cores = CPU_COUNT(&allowed);
    machine->cpusets = machine_cpusets(&allowed, count);
    uint64_t memory = machine_memory_bytes() / (uint64_t)count;
    for (int i = 0; i < count; i++)
        machine->devices[i] = (struct planner_device){.name = xasprintf("local/%d", i),
                                                      .host = "local",
                                                      .memory_bytes = memory,
                                                      .profile = &machine->profiles[i]};
    machine_name_cores(machine);
    return machine_probe(machine, measure, err);
}

void machine_tell(const struct machine *machine)
{
    char when[32];
    if (machine->note[0])
        fprintf(stderr, "%s\n", machine->note);
    if (machine->kept)
        fprintf(stderr, "using this machine's measurements from %s; --measure repeats them\n",
                units_print_minute(when, sizeof when, machine->measured_unix_ms));
}

void machine_finish(struct machine *machine)
{
    for (int i = 0; i < machine->count && machine->devices; i++) {
        free((char *)machine->devices[i].name);
        free((char *)machine->devices[i].cores);
    }
    free(machine->devices);
    free(machine->profiles);
    free(machine->cpusets);
    free(machine->note);
    *machine = (struct machine){0};
}

static bool machine_is_missing(const char *path)
{
    struct stat status;
    return stat(path, &status) < 0 && errno == ENOENT;
}

static int saving_make(const char *root, struct error *err)
{
    int rc = folder_make_mode(root, 0777, err);
    if (rc == 0 && faccessat(AT_FDCWD, root, W_OK | X_OK, AT_EACCESS) < 0)
        rc = error_set(err, -errno, "files in '%s' cannot be written: %s", root, strerror(errno));
    return rc;
}

/* Of "bottles-3" the 3, if that is a run of `job`; otherwise 0. */
static uint64_t saving_number(const char *name, const char *job)
{
    size_t length = strlen(job);
    bool is_run = strncmp(name, job, length) == 0 && name[length] == '-' &&
                  name[length + 1] >= '1' && name[length + 1] <= '9' &&
                  strspn(name + length + 1, "0123456789") == strlen(name + length + 1);
    return is_run ? strtoull(name + length + 1, NULL, 10) : 0;
}

/* The number of the newest run of `job` in a folder; 0: there is none. */
static uint64_t saving_newest(const char *runs, const char *job)
{
    uint64_t newest = 0, number;
    DIR *list = opendir(runs);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if ((number = saving_number(entry->d_name, job)) > newest)
            newest = number;
    if (list)
        closedir(list);
    return newest;
}

/* A folder that no other run has, or for a run that goes on the newest. */
static int saving_find_run(const char *job, bool resume, char **out, struct error *err)
{
    char *runs = NULL, *root = NULL;
    int rc = path_resolve("the folder of runs", RUNS_FOLDER, PATH_HERE, &runs, err);
    if (rc == 0 && !resume)
        rc = saving_make(runs, err);
    uint64_t number = rc == 0 ? saving_newest(runs, job) : 0;
    if (rc == 0 && resume && number == 0)
        rc = error_set(err, -ENOENT, "'%s' has no run of %s to continue: leave out --resume", runs,
                       job);
    while (rc == 0 && !root) {
        root = xasprintf("%s/%s-%" PRIu64, runs, job, resume ? number : ++number);
        if (!resume && mkdir(root, 0777) < 0) {
            /* another run has made it, or removed the folder of all */
            rc = errno == EEXIST   ? 0
                 : errno == ENOENT ? saving_make(runs, err)
                                   : error_set(err, -errno, "'%s': %s", root, strerror(errno));
            free(root);
            root = NULL;
        }
    }
    free(runs);
    *out = root;
    return rc;
}

int machine_prepare_saving(const char *dir, const char *job, bool resume, char **out,
                           struct error *err)
{
    if (!dir)
        return saving_find_run(job, resume, out, err);
    char *root = checkpoint_root_local(dir, job);
    int rc = resume && machine_is_missing(root) ? 0 : saving_make(root, err);
    if (rc < 0)
        free(root);
    else
        *out = root;
    return rc;
}

void machine_forget_run(const char *root)
{
    static const char *const own[] = {"listed", "lock"};
    struct error ignored;
    char *found, *above = xstrdup(root);
    if (ancestor_find(root, &found, &ignored) == 0) {
        free(found);
        free(above);
        return;
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        char *path = xasprintf("%s/%s", root, own[i]);
        unlink(path);
        free(path);
    }
    rmdir(root);
    *strrchr(above, '/') = '\0';
    rmdir(above); /* unless there are other runs */
    free(above);
}

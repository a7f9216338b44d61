/* state.c - the folder for what must survive a worker: its credential, and which coordinator it
 * obeys. */
#include "worker/doctor/machine.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Whether a running worker holds the lock on NAME.lock there. The kernel lists it as "1: FLOCK
 * ADVISORY WRITE 4711 08:01:1234 0 EOF". Trying the lock instead could keep out a worker that is
 * just starting. */
static bool is_claimed(const struct machine *machine)
{
    char *path = xasprintf("%s/%s.lock", machine->settings->state, machine->settings->name);
    char *locks = xasprintf("%s/locks", machine->proc), line[256], inode[32];
    struct stat status;
    bool claimed = false;
    FILE *file = stat(path, &status) == 0 ? fopen(locks, "re") : NULL;
    snprintf(inode, sizeof inode, ":%llu ", file ? (unsigned long long)status.st_ino : 0);
    while (file && !claimed && fgets(line, sizeof line, file))
        claimed = strstr(line, " FLOCK ") && strstr(line, inode);
    if (file)
        fclose(file);
    free(locks);
    free(path);
    return claimed;
}

/* The nearest ancestor that exists; a check does not create folders. The caller frees it. */
static char *nearest_above(const char *path)
{
    char *above = xstrdup(path), *slash;
    struct stat stat_of;
    while ((slash = strrchr(above, '/')) && stat(above, &stat_of) < 0)
        slash[slash == above] = '\0';
    if (slash)
        return above;
    free(above);
    return xstrdup(".");
}

static void look_above(const char *state, struct findings *out)
{
    char *above = nearest_above(state);
    if (access(above, W_OK | X_OK) == 0)
        finding_ok(out, "%s does not exist yet; the worker will create it in %s", state, above);
    else
        finding_block(out, "a folder of the worker's user, or --state DIR",
                      "%s does not exist, and cannot be created in %s: %s", state, above,
                      strerror(errno));
    free(above);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Write as the worker does: durably, with a rename over the old file. */
static int try_file(const char *state, double *seconds, struct error *err)
{
    char *path = xasprintf("%s/doctor-%d", state, (int)getpid());
    double begin = now_s();
    int rc = file_write(path, "this file may go\n", 0600, err);
    *seconds = now_s() - begin;
    unlink(path);
    free(path);
    return rc;
}

static bool is_in_memory(const char *state)
{
    struct statfs fs;
    return statfs(state, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static void look(void *scene, struct findings *out)
{
    struct machine *machine = scene;
    const struct worker_settings *settings = machine->settings;
    const char *state = settings->state;
    struct error err;
    double seconds;
    char text[32];
    if (access(state, F_OK) < 0 && errno == ENOENT) {
        look_above(state, out);
        return;
    }
    if (try_file(state, &seconds, &err) < 0) {
        finding_block(out,
                      "a folder that the worker's user may write, on a disk with room: --state DIR",
                      "%s", err.text);
        return;
    }
    machine->works = is_claimed(machine);
    units_print_seconds(text, sizeof text, seconds);
    if (settings->tls && is_in_memory(state))
        finding_warn(out, "a folder on a disk: --state DIR",
                     "%s is in memory: when the machine restarts, this node's credential is lost, "
                     "and it has to join again",
                     state);
    else
        finding_ok(out, "%s stores a file durably in %s%s", state, text,
                   machine->works ? "; a worker of this name is running there" : "");
}

const struct doctor_check check_state = {
    .name = "state",
    .about = "the folder for what must survive the worker",
    .cb = look,
};

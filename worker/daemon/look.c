/* look.c - reads /proc/PID/stat of the process and of its threads. */
#include "worker/daemon/look.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_SIZE 512

/* Returns what follows the name, which is in parentheses and may contain parentheses itself. NULL:
 * the process is gone. */
static const char *read_stat(const char *path, char line[LINE_SIZE])
{
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    size_t size = fread(line, 1, LINE_SIZE - 1, file);
    fclose(file);
    line[size] = '\0';
    const char *end = strrchr(line, ')');
    return end && end[1] == ' ' ? end + 2 : NULL;
}

/* User and system time are fields 14 and 15; the text begins with the state, field 3. */
static uint64_t busy_ms(const char *stat)
{
    unsigned long long user = 0, system = 0;
    sscanf(stat, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system);
    return (uint64_t)(user + system) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static bool some_thread_wants_to_run(pid_t pid)
{
    char path[64], line[LINE_SIZE];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    bool some = false;
    for (const struct dirent *entry; folder && !some && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name);
        const char *stat = read_stat(path, line);
        some = stat && stat[0] == 'R';
    }
    if (folder)
        closedir(folder);
    return some;
}

void look_again(struct look *look, pid_t pid, uint64_t now_ms)
{
    char path[40], line[LINE_SIZE];
    const struct look before = *look;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *stat = read_stat(path, line);
    *look = (struct look){.at_ms = now_ms};
    if (!stat)
        return;
    look->busy_ms = busy_ms(stat);
    look->stopped = stat[0] == 'T' || stat[0] == 't';
    bool idle = before.at_ms > 0 && 2 * (look->busy_ms - before.busy_ms) < now_ms - before.at_ms;
    look->starved = idle && !look->stopped && some_thread_wants_to_run(pid);
}

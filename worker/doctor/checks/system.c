/* system.c - system calls that are indispensable. A kernel may be too old for them, or a container
 * may refuse them. */
#include "worker/doctor/machine.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static int open_process(void)
{
    return (int)syscall(SYS_pidfd_open, getpid(), 0);
}

static int make_memory_file(void)
{
    return memfd_create("gimbal-doctor", MFD_CLOEXEC);
}

/* A range without open descriptors. */
static int close_nothing(void)
{
    return close_range(~0u - 1, ~0u, 0);
}

static const struct {
    const char *name, *since, *use;
    int (*call)(void); /* -1 with errno; otherwise 0 or a descriptor */
} calls[] = {
    {"pidfd_open", "5.3", "a worker notices with it that an executor has ended", open_process},
    {"memfd_create", "3.17", "training states outlive a killed executor in its files",
     make_memory_file},
    {"close_range", "5.9", "executors start without the files that the worker has open",
     close_nothing},
};

static void look(void *scene, struct findings *out)
{
    (void)scene;
    struct utsname name;
    bool all = true;
    if (uname(&name) < 0)
        strcpy(name.release, "of an unknown release");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int fd = calls[i].call(), error = errno;
        if (fd > 0)
            close(fd);
        if (fd >= 0)
            continue;
        all = false;
        finding_block(out,
                      "Linux 5.9 or newer, and a container that allows the call (as the default "
                      "seccomp profile of a current runtime does)",
                      "Linux %s refuses %s, which came with %s: %s; %s", name.release,
                      calls[i].name, calls[i].since, strerror(error), calls[i].use);
    }
    if (all)
        finding_ok(out, "Linux %s has all system calls that are needed", name.release);
}

const struct doctor_check check_system = {
    .name = "system",
    .about = "the kernel, and what a container lets through to it",
    .cb = look,
};

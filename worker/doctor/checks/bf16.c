/* bf16.c - a processor with AMX multiplies bf16 by it, if the kernel grants this process the tile
 * registers. */
#include "worker/doctor/machine.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

static int ask_for_tiles(void)
{
#ifdef SYS_arch_prctl
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 ? 0 : errno;
#else
    return ENOSYS;
#endif
}

static void look(void *scene, struct findings *out)
{
    const struct machine *machine = scene;
    char text[16384];
    if (machine_accelerates(machine) ||
        !machine_read(machine->proc, "cpuinfo", text, sizeof text) || !strstr(text, " amx_tile"))
        return; /* bf16 takes the same path as f32 here, which is no problem */
    int error = ask_for_tiles();
    if (error == 0)
        finding_ok(out, "the processor's AMX multiplies bf16");
    else
        finding_warn(out, "a kernel of 5.16 or newer, and a container that allows arch_prctl",
                     "the processor has AMX, but the kernel does not let this process use it: "
                     "%s; jobs in bf16 are no faster than in f32",
                     strerror(error));
}

const struct doctor_check check_bf16 = {
    .name = "bf16",
    .about = "whether bf16 products use AMX",
    .cb = look,
};

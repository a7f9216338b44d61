/* scene.c - see scene.h. */
#include "tests/worker/doctor/scene.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

struct examination scene;
struct worker_settings scene_settings;
char scene_folder[32];
static char self[64], proc[64], state[64];

void scene_open(void)
{
    const struct hardware_device device = {
        .kind = HARDWARE_CPU, .name = "EPYC", .cpuset = "0", .cores = 1, .memory_bytes = 1u << 30};
    strcpy(scene_folder, "/tmp/gimbal-scene-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scene_folder));
    snprintf(self, sizeof self, "%s/self", scene_folder);
    snprintf(proc, sizeof proc, "%s/proc", scene_folder);
    snprintf(state, sizeof state, "%s/state", scene_folder);
    scene_put("self", "0::/inner\n");
    scene_put("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"
                              "CommitLimit: 4194304 kB\nCommitted_AS: 3145728 kB\n");
    scene_settings = (struct worker_settings){
        .name = "node-a", .coordinator = "tcp://127.0.0.1:9", .state = state, .share_count = 1};
    scene = examination_open(&scene_settings, SHIM, EXECUTOR, -1);
    scene.cgroups = scene_folder;
    scene.cgroup_self = self;
    scene.proc = proc;
    scene.report = hardware_report_create("node-a", "host", "EPYC", "0");
    scene.report->cores = 2;
    scene.report->memory_bytes = 2u << 30;
    hardware_report_add_device(scene.report, &device);
    hardware_report_add_device(scene.report, &device);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

void scene_close(void)
{
    examination_finish(&scene);
    ck_assert_int_eq(nftw(scene_folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void scene_put(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", scene_folder, name), *slash = strrchr(path, '/');
    *slash = '\0';
    ck_assert_int_eq(folder_make(path, NULL), 0);
    *slash = '/';
    ck_assert_int_eq(file_write(path, text, 0600, NULL), 0);
    free(path);
}

void scene_says(const struct doctor_check *check, const char *words)
{
    const struct doctor_check *const checks[] = {check, NULL};
    struct findings findings = {0};
    char text[8192] = "";
    doctor_run(checks, &scene, &findings);
    for (size_t i = 0; i < findings.count; i++) {
        const struct finding *item = &findings.items[i];
        ck_assert_str_eq(item->check, check->name);
        ck_assert_int_eq(item->verdict == VERDICT_OK, item->right == NULL);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s: %s\n", verdict_name(item->verdict),
                 item->found);
    }
    ck_assert_msg(words ? strstr(text, words) != NULL : findings.count == 0,
                  "%s says not '%s' but\n%s", check->name, words ? words : "nothing", text);
    findings_finish(&findings);
}

void scene_refuse(int call)
{
    struct sock_filter rows[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rows / sizeof *rows, rows};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

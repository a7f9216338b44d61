/* examination.c - what checks look at, and their findings as JSON. */
#include "worker/doctor/examination.h"

#include "common/base/memory.h"
#include "worker/hardware/cgroup.h"

#include <stdlib.h>
#include <string.h>

struct examination examination_open(const struct worker_settings *settings, const char *shim,
                                    const char *executor, int stop_fd)
{
    return (struct examination){
        .settings = settings,
        .shim = shim,
        .executor = executor,
        .stop_fd = stop_fd,
        .cgroups = CGROUPS,
        .cgroup_self = CGROUP_SELF,
        .proc = "/proc",
        .dev = "/dev",
    };
}

void examination_finish(struct examination *examination)
{
    hardware_report_destroy(examination->report);
    examination->report = NULL;
}

bool examination_accelerates(const struct examination *examination)
{
    return examination->report && examination->report->device_count > 0 &&
           examination->report->devices[0].kind == HARDWARE_GPU;
}

bool examination_read(const char *folder, const char *name, char *out, size_t size)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(out, 1, size - 1, file) : 0;
    bool read = file && !ferror(file);
    if (file)
        fclose(file);
    free(path);
    out[length] = '\0';
    if (length > 0 && out[length - 1] == '\n')
        out[length - 1] = '\0';
    return read;
}

bool examination_memory(const struct examination *examination, const char *name, uint64_t *bytes)
{
    char text[8192], *line;
    unsigned long long kib;
    if (!examination_read(examination->proc, "meminfo", text, sizeof text))
        return false;
    line = strstr(text, name);
    if (!line || sscanf(line + strlen(name), "%llu", &kib) != 1)
        return false;
    *bytes = (uint64_t)kib * 1024;
    return true;
}

const struct doctor_check *const examination_checks[] = {
    &check_system,  &check_state,       &check_devices, &check_cores,  &check_memory,
    &check_limits,  &check_threads,     &check_bf16,    &check_nvidia, &check_certificates,
    &check_address, &check_coordinator, NULL,
};

static void print_findings(const char *node, const struct hardware_report *report,
                           const struct findings *findings, FILE *out)
{
    json_t *json = json_pack("{s:s*, s:o, s:o}", "node", node, "report",
                             report ? hardware_report_to_json(report) : json_null(), "findings",
                             findings_to_json(findings));
    json_dumpf(json, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(json);
}

void examination_run(struct examination *examination, FILE *out)
{
    struct findings findings = {0};
    doctor_run(examination_checks, examination, &findings);
    print_findings(examination->settings->name, examination->report, &findings, out);
    findings_finish(&findings);
}

void examination_refuse(const char *words, FILE *out)
{
    struct findings findings = {.check = "settings", .about = "the worker's settings"};
    finding_block(&findings, "valid settings: 'gimbal-worker --help' lists them", "%s", words);
    print_findings(NULL, NULL, &findings, out);
    findings_finish(&findings);
}

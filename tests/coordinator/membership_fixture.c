/* membership_fixture.c - see membership_fixture.h. */
#include "tests/coordinator/membership_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct membership *members;
struct membership_events events;

void members_setup(void)
{
    members = membership_create(&MEMBERSHIP_CONFIG_DEFAULT);
    events = (struct membership_events){0};
    err.text[0] = '\0';
}

void members_teardown(void)
{
    membership_destroy(members);
    membership_events_finish(&events);
}

int report(const char *name, const char *host, uint64_t instance, unsigned devices, double flops,
           uint64_t now_ms)
{
    struct hardware_report *made = hardware_report_create(name, host, "EPYC", "0-3");
    struct hardware_device device = {
        .name = "EPYC", .cpuset = "0", .cores = 1, .memory_bytes = 1 << 30, .flops = flops};
    for (unsigned i = 0; i < devices; i++)
        hardware_report_add_device(made, &device);
    int rc = membership_report(members, instance, made, now_ms, &events, &err);
    hardware_report_destroy(made);
    return rc;
}

void join(const char *name, uint64_t instance, unsigned devices, uint64_t now_ms)
{
    ck_assert_msg(report(name, "host-1", instance, devices, 0, now_ms) == 0, "%s", err.text);
}

int beat(const char *name, uint64_t instance, uint64_t now_ms)
{
    return membership_heartbeat(members, name, instance, now_ms, &events, &err);
}

void hear(const char *name, uint64_t instance, bool follows, uint64_t now_ms)
{
    membership_hear(members, name, instance, follows, now_ms, &events);
}

void events_are(const char *expected)
{
    char text[1024] = "";
    for (size_t i = 0; i < events.count; i++) {
        const struct membership_event *event = &events.items[i];
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %s %llu%s%s", i ? "; " : "",
                 membership_event_name(event->kind), event->worker,
                 (unsigned long long)event->instance, event->reason[0] ? ": " : "", event->reason);
    }
    membership_events_finish(&events);
    ck_assert_str_eq(text, expected);
}

void state_is(const char *name, const char *expected)
{
    const struct worker *worker = membership_find(members, name);
    ck_assert_ptr_nonnull(worker);
    ck_assert_str_eq(worker_state_name(worker_state(worker)), expected);
}

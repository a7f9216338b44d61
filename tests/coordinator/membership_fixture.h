/* membership_fixture.h - workers that report, beat and are looked at, for tests. */
#ifndef TESTS_COORDINATOR_MEMBERSHIP_FIXTURE_H
#define TESTS_COORDINATOR_MEMBERSHIP_FIXTURE_H

#include "coordinator/membership/membership.h"
#include "tests/support/suite.h"

extern struct membership *members;
extern struct membership_events events;
extern struct error err; /* job_fixture.c has it for all */

void members_setup(void);
void members_teardown(void);

/* A report of so many CPU devices; as membership_report. join() has to succeed, on "host-1". */
int report(const char *name, const char *host, uint64_t instance, unsigned devices, double flops,
           uint64_t now_ms);
void join(const char *name, uint64_t instance, unsigned devices, uint64_t now_ms);
int beat(const char *name, uint64_t instance, uint64_t now_ms);
void hear(const char *name, uint64_t instance, bool follows, uint64_t now_ms);

/* The events since the last call, as "joined node-a 1: reason; ...". */
void events_are(const char *expected);
void state_is(const char *name, const char *expected);

#endif

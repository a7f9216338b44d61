/* rendezvous.h - a key-value store in shared memory: ranks are threads or forked processes. */
#ifndef TESTS_SUPPORT_RENDEZVOUS_H
#define TESTS_SUPPORT_RENDEZVOUS_H

#include "worker/collectives/collective.h"

/* Create before the ranks start. get waits at most limit_s. */
struct rendezvous *test_rendezvous_create(double limit_s);
void test_rendezvous_destroy(struct rendezvous *rendezvous);

#endif

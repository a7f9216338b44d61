/* rendezvous.h - a rendezvous in shared memory, for ranks that are threads or forked processes. */
#ifndef TESTS_SUPPORT_RENDEZVOUS_H
#define TESTS_SUPPORT_RENDEZVOUS_H

#include "worker/collectives/collective.h"

/* To be created before processes are forked. Its get() waits at most limit_s for a key. */
struct rendezvous *test_rendezvous_create(double limit_s);
void test_rendezvous_destroy(struct rendezvous *rendezvous);

#endif

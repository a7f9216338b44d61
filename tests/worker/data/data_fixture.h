/* data_fixture.h - files of tests, and sources that read them. */
#ifndef TESTS_WORKER_DATA_DATA_FIXTURE_H
#define TESTS_WORKER_DATA_DATA_FIXTURE_H

#include "tests/support/suite.h"
#include "worker/data/data.h"

/* Every test runs in an empty directory of its own, whose path this is. */
extern char data_folder[64];
void data_setup(void);
void data_teardown(void);

void write_file(const char *path, const void *bytes, size_t size);
/* Byte i is i modulo 251, from first on: with no more than 251 bytes, each tells its place. */
void write_ramp(const char *path, size_t first, size_t size);

/* data: the section's inside, such as "text: [a, b]"; eval: that of eval. */
struct data_source *open_data(const char *data, int seq, double holdout, int seed);
struct data_source *open_evaluated(const char *data, const char *eval, int seq, int seed);
/* With a tokenizer of so many tokens, 0: of none, the data are refused. */
int refuse_data(const char *data, const char *eval, int64_t known, struct error *err);
void check_refused(const char *data, int seq, double holdout, int rc, const char *sentence);

#endif

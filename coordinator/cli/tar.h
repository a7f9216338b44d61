/* tar.h - an archive as POSIX has it (ustar), file by file. */
#ifndef COORDINATOR_CLI_TAR_H
#define COORDINATOR_CLI_TAR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A file of that name, at most 99 bytes. What cannot be written is told by ferror(out). */
void tar_add(FILE *out, const char *name, const char *bytes, size_t size, int64_t unix_s);
void tar_end(FILE *out);

#endif

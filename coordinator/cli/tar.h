/* tar.h - writes an archive in the POSIX format (ustar), file by file. */
#ifndef COORDINATOR_CLI_TAR_H
#define COORDINATOR_CLI_TAR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Append a file; its name has at most 99 bytes. Check ferror(out) for errors. */
void tar_add(FILE *out, const char *name, const char *bytes, size_t size, int64_t unix_s);
void tar_end(FILE *out);

#endif

/* libraries.h - which libraries this process has, by what they say of themselves: for bug reports.
 */
#ifndef COMMON_BASE_LIBRARIES_H
#define COMMON_BASE_LIBRARIES_H

#include <stdio.h>

/* "release 0.2.0", and a line for each library: its name, and its version. */
void libraries_print(const char *release, FILE *out);

#endif

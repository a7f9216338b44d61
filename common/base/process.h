/* process.h - what a program arranges for its own process before it works, and with which libraries
 * it runs. */
#ifndef COMMON_BASE_PROCESS_H
#define COMMON_BASE_PROCESS_H

#include <stdio.h>

/* To be called first in main(), of every program: open those of descriptors 0, 1 and 2 that are
 * closed. Otherwise what is opened next gets their numbers, and is read, written or replaced as
 * standard input, output or error, here or in a child. They stay as useless as they were: reading
 * and writing fails with EBADF. Where /dev/null cannot be opened, the process ends. */
void process_hold_standard(void);

/* Raise the limit on open files and connections to the most that the system allows this user; where
 * that fails, the limit stays. The usual default is 1024. */
void process_allow_descriptors(void);

/* For daemons: keep freed memory for reuse. By default glibc returns it to the system after every
 * large message, and getting it back costs more than handling the message. */
void process_keep_memory(void);

/* To be called before exec: limit how long OpenMP threads of the process about to start spin before
 * they sleep. The library reads its environment when it is loaded; a user's own setting is
 * respected.
 *
 * GNU's OpenMP spins for long at the end of every parallel loop, assuming that all cores are its
 * own. With other processes on the same cores, the thread being waited for does not get to run
 * meanwhile: two small trainings on the same cores took 460 ms a step, where one alone took 7. */
void process_spin_briefly(void);

/* For bug reports: "release 0.2.0", and a line for each library that this process has, by what it
 * says of itself: its name, and its version. */
void process_print_libraries(const char *release, FILE *out);

#endif

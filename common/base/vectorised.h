/* vectorised.h - compiles a function several times, for different vector extensions.
 *
 * The best version for the machine is chosen when the program is loaded. VECTORISED goes before a
 * function and covers what is inlined into it; its file has to be compiled with -O3. */
#ifndef COMMON_BASE_VECTORISED_H
#define COMMON_BASE_VECTORISED_H

#if defined(__x86_64__) && !defined(__clang__)
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif

#endif

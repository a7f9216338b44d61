/* vectorised.h - functions whose loops are vector code for the machine that runs them.
 *
 * The fastest of these that it has is chosen when the program is loaded. It holds for one function
 * and what is inlined into it; the file is to be compiled at -O3. */
#ifndef COMMON_BASE_VECTORISED_H
#define COMMON_BASE_VECTORISED_H

#if defined(__x86_64__) && !defined(__clang__)
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif

#endif

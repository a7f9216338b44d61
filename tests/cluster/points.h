/* points.h - a program that may be killed before and after calls of chosen functions.
 *
 * A table X(POINT, POINT_VOID) has a row per function: result type, name, parameters, arguments;
 * POINT_VOID where there is no result. The program is linked so that calls between its files come
 * by the wrappers that POINT_WRAP makes of the rows (ld --wrap); each tells point_passed, which is
 * the program's own, where it is: "before store_commit", "after store_commit". */
#ifndef TESTS_CLUSTER_POINTS_H
#define TESTS_CLUSTER_POINTS_H

/* Kills the process, or returns. On the calling thread, whichever that is. */
void point_passed(const char *name);

#define POINT_WRAP(type, name, parameters, arguments)                                              \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        point_passed("before " #name);                                                             \
        type result = __real_##name arguments;                                                     \
        point_passed("after " #name);                                                              \
        return result;                                                                             \
    }
#define POINT_WRAP_VOID(name, parameters, arguments)                                               \
    void __real_##name parameters;                                                                 \
    void __wrap_##name parameters;                                                                 \
    void __wrap_##name parameters                                                                  \
    {                                                                                              \
        point_passed("before " #name);                                                             \
        __real_##name arguments;                                                                   \
        point_passed("after " #name);                                                              \
    }

/* The names of a table's points, as the items of an array. */
#define POINT_NAMES(type, name, parameters, arguments) "before " #name, "after " #name,
#define POINT_NAMES_VOID(name, parameters, arguments) "before " #name, "after " #name,

#endif

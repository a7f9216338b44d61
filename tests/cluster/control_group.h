/* control_group.h - a control group of our own: version 1 or 2, where this machine lets us make
 * one. */
#ifndef TESTS_CLUSTER_CONTROL_GROUP_H
#define TESTS_CLUSTER_CONTROL_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { CONTROL_GROUP_1, CONTROL_GROUP_2, CONTROL_GROUP_VERSIONS };

struct control_group {
    char root[256], folder[288]; /* the root is where processes come from, and go back to */
    int version;
};

/* Make it. controller: "cpu". limits: the file of each version that shall be there to be written.
 * NULL, or why there can be none. */
const char *control_group_open(struct control_group *group, const char *controller,
                               const char *const limits[CONTROL_GROUP_VERSIONS]);
/* Write to one of its files; false: it cannot be, see errno. */
bool control_group_say(const struct control_group *group, const char *name, const char *words);
/* The process, and the children that it has from now on, are in it; or where processes are that
 * nobody limits. */
void control_group_take(const struct control_group *group, pid_t pid);
void control_group_release(const struct control_group *group, pid_t pid);
/* It goes; false: somebody is in it. */
bool control_group_close(const struct control_group *group);

#endif

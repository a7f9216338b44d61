/* test_hosts.c - how many devices each host has, or that it is not the same number. */
#include "coordinator/planner/costs/request.h"
#include "tests/support/suite.h"

#include <string.h>

/* A letter for the host of each device. */
static const struct {
    const char *hosts;
    int share;
} rows[] = {
    {"a", 1},      {"aa", 2},    {"ab", 1},   {"aabb", 2},  {"abcd", 1},
    {"aaabbb", 3}, {"aab", 0},   {"abb", 0},  {"aabbc", 0}, {"aabc", 0},
    {"abbc", 0},   {"aaabb", 0}, {"aaab", 0}, {"abbb", 0},  {"aabbbb", 0},
};

START_TEST(hosts_share_alike_or_not)
{
    char names[8][2] = {""};
    struct planner_device devices[8] = {0};
    int count = (int)strlen(rows[_i].hosts);
    for (int i = 0; i < count; i++) {
        names[i][0] = rows[_i].hosts[i];
        devices[i].host = names[i];
    }
    ck_assert_msg(hosts_share(devices, count) == rows[_i].share, "%s: %d", rows[_i].hosts,
                  hosts_share(devices, count));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("hosts");
    tcase_add_loop_test(tcase, hosts_share_alike_or_not, 0, sizeof rows / sizeof *rows);
    return suite_run("hosts", tcase, NULL);
}

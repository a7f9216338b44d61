/* test_links.c - links of a cluster, of which one is not like the others. */
#include "coordinator/cli/commands/doctor/links.h"

#include <string.h>

#include "tests/support/suite.h"

static struct link_figure within(const char *node, const char *like, double gb_s, double latency_s)
{
    return (struct link_figure){.level = "within",
                                .like = like,
                                .from = node,
                                .to = node,
                                .latency_s = latency_s,
                                .bytes_per_s = gb_s * (double)(1 << 30)};
}

/* What is said of them, a line each. */
static char *judge(const struct link_figure *figures, size_t count)
{
    static char text[4096];
    struct findings findings = {.check = "links", .about = "links"};
    size_t used = 0;
    links_judge(figures, count, &findings);
    for (size_t i = 0; i < findings.count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s: %s\n",
                                 verdict_name(findings.items[i].verdict), findings.items[i].found);
    findings_finish(&findings);
    return text;
}

START_TEST(a_link_of_less_than_half_the_median_is_named)
{
    struct link_figure links[] = {within("a", "H100", 300, 1e-5), within("b", "H100", 280, 1e-5),
                                  within("c", "H100", 100, 1e-5)};
    ck_assert(links_median_bandwidth(links, 3, &links[2]) == links[1].bytes_per_s);
    ck_assert_str_eq(judge(links, 3), "warning: 100.0 GiB/s between the devices of c, while half "
                                      "of such links have 280.0 GiB/s or more\n");
    links[2].bytes_per_s *= 1.5;
    ck_assert_str_eq(judge(links, 3),
                     "ok: 3 links within nodes of H100, none much slower than the others\n");
}
END_TEST

START_TEST(a_link_is_compared_with_those_of_its_like)
{
    const struct link_figure links[] = {
        within("a", "H100", 300, 1e-5), within("b", "EPYC", 1, 1e-5),
        within("c", "H100", 300, 1e-5), within("d", "H100", 300, 1e-5)};
    ck_assert_str_eq(judge(links, 4),
                     "ok: 3 links within nodes of H100, none much slower than the others\n"
                     "ok: 1 link within nodes of EPYC, none much slower than the others\n");
}
END_TEST

START_TEST(a_way_of_more_than_twice_the_median_is_named)
{
    struct link_figure links[] = {{"between", "", "here", "a", 2e-4, 0, 0},
                                  {"between", "", "here", "b", 2e-4, 0, 0},
                                  {"between", "", "here", "c", 4e-4, 0, 0}};
    ck_assert(links_median_latency(links, 2, &links[0]) == 2e-4);
    ck_assert(links_median_bandwidth(links, 3, &links[0]) == 0);
    ck_assert_str_eq(judge(links, 3), "ok: 3 links between nodes, none much slower than the "
                                      "others\n");
    links[2].latency_s = 3e-3;
    ck_assert_str_eq(judge(links, 3), "warning: a message takes 3.00 ms from here to c, while "
                                      "half of such links take 200.0 us or less\n");
}
END_TEST

SUITE(links)
{
    TCase *tcase = tcase_create("links");
    tcase_add_test(tcase, a_link_of_less_than_half_the_median_is_named);
    tcase_add_test(tcase, a_link_is_compared_with_those_of_its_like);
    tcase_add_test(tcase, a_way_of_more_than_twice_the_median_is_named);
    return suite_run("links", tcase, NULL);
}

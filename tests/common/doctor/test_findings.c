/* test_findings.c - what checks have found, and the same as JSON. */
#include "common/doctor/doctor.h"

#include <errno.h>
#include <string.h>

#include "tests/support/suite.h"

static int looked_at;

static void look_at_both(void *scene, struct findings *out)
{
    ck_assert_ptr_eq(scene, &looked_at);
    finding_ok(out, "%d of 2", 1);
    finding_warn(out, "write '2'", "'%s' is no number", "\xff");
}

static void look_at_none(void *scene, struct findings *out)
{
    (void)scene;
    finding_block(out, "some", "there are none");
}

static const struct doctor_check both = {"both", "of two", look_at_both},
                                 none = {"none", "of none", look_at_none};

START_TEST(the_worst_finding_is_the_verdict)
{
    struct findings findings = {0};
    ck_assert_int_eq(findings_worst(&findings), VERDICT_OK);
    doctor_run((const struct doctor_check *const[]){&both, NULL}, &looked_at, &findings);
    ck_assert_uint_eq(findings.count, 2);
    ck_assert_str_eq(findings.items[0].found, "1 of 2");
    ck_assert_ptr_null(findings.items[0].right);
    ck_assert_int_eq(findings_worst(&findings), VERDICT_WARNING);
    doctor_run((const struct doctor_check *const[]){&none, NULL}, NULL, &findings);
    ck_assert_int_eq(findings_worst(&findings), VERDICT_BLOCKING);
    ck_assert_str_eq(findings.items[2].check, "none");
    ck_assert_str_eq(findings.items[2].about, "of none");
    findings_finish(&findings);
}
END_TEST

/* Bytes that are no text are marked: what a check has found is never lost for them. */
START_TEST(findings_come_back_from_json_as_they_were)
{
    struct error err = {""};
    struct findings findings = {0}, back = {0};
    doctor_run((const struct doctor_check *const[]){&both, &none, NULL}, &looked_at, &findings);
    json_t *json = findings_to_json(&findings);
    ck_assert_msg(findings_add_json(&back, json, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(back.count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(back.items[i].check, findings.items[i].check);
        ck_assert_int_eq(back.items[i].verdict, findings.items[i].verdict);
    }
    ck_assert_ptr_null(back.items[0].right);
    ck_assert_str_eq(back.items[1].found, "'?' is no number");
    ck_assert_str_eq(back.items[1].right, "write '2'");
    json_decref(json);
    findings_finish(&findings);
    findings_finish(&back);
}
END_TEST

START_TEST(what_is_no_finding_is_refused)
{
    static const char *const wrong[] = {
        "[7]", "[{\"check\": \"a\", \"about\": \"b\", \"found\": \"c\"}]",
        "[{\"check\": \"a\", \"about\": \"b\", \"found\": \"c\", \"verdict\": \"fine\"}]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct findings findings = {0};
        struct error err = {""};
        json_t *json = json_loads(wrong[i], 0, NULL);
        ck_assert_int_eq(findings_add_json(&findings, json, &err), -EINVAL);
        ck_assert_str_eq(err.text, "finding 0 is none");
        json_decref(json);
    }
}
END_TEST

SUITE(findings)
{
    TCase *tcase = tcase_create("findings");
    tcase_add_test(tcase, the_worst_finding_is_the_verdict);
    tcase_add_test(tcase, findings_come_back_from_json_as_they_were);
    tcase_add_test(tcase, what_is_no_finding_is_refused);
    return suite_run("findings", tcase, NULL);
}

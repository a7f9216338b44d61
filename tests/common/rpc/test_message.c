/* test_message.c - bytes that nobody vouches for. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/message/message.h"
#include "common/rpc/transport.h"
#include "proto/coordinator.pb-c.h"
#include "tests/common/rpc/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A hardware report with every kind of field in it, packed. */
static void *pack_report(size_t *size)
{
    Gimbal__Cache cache = GIMBAL__CACHE__INIT;
    cache.level = 3;
    cache.size_bytes = 1ull << 40;
    Gimbal__Cache *caches[] = {&cache, &cache};
    Gimbal__Device device = GIMBAL__DEVICE__INIT;
    device.kind = GIMBAL__DEVICE__KIND__GPU;
    device.name = (char *)"H200";
    device.flops = 1e15;
    Gimbal__Device *devices[] = {&device};
    Gimbal__HardwareReport report = GIMBAL__HARDWARE_REPORT__INIT;
    report.node = (char *)"n\xc3\xb6rdlich";
    report.caches = caches;
    report.n_caches = 2;
    report.devices = devices;
    report.n_devices = 1;
    return message_pack(&report.base, size);
}

START_TEST(a_message_survives_its_packing)
{
    size_t size;
    void *bytes = pack_report(&size);
    ProtobufCMessage *message;
    ck_assert_int_eq(message_unpack(&gimbal__hardware_report__descriptor, bytes, size,
                                    message_quota(size), &message, NULL),
                     0);
    const Gimbal__HardwareReport *report = (const Gimbal__HardwareReport *)message;
    ck_assert_str_eq(report->node, "n\xc3\xb6rdlich");
    ck_assert_uint_eq(report->caches[1]->size_bytes, 1ull << 40);
    ck_assert_double_eq(report->devices[0]->flops, 1e15);
    message_free(message);
    free(bytes);
}
END_TEST

START_TEST(a_message_cut_inside_a_field_is_refused)
{
    struct error err;
    size_t size;
    unsigned char *bytes = pack_report(&size);
    ProtobufCMessage *message;
    ck_assert_int_eq(message_unpack(&gimbal__hardware_report__descriptor, bytes, size - 1,
                                    message_quota(size), &message, &err),
                     -EPROTO);
    ck_assert_ptr_nonnull(strstr(err.text, "gimbal.HardwareReport"));
    free(bytes);
}
END_TEST

/* A megabyte of empty submessages, two bytes each, would take some 50 MB. */
START_TEST(a_bomb_of_empty_submessages_is_refused)
{
    struct error err;
    size_t size = (size_t)1 << 20;
    unsigned char *bytes = xcalloc(1, size);
    for (size_t i = 0; i < size; i += 2)
        bytes[i] = 10 << 3 | 2; /* devices, of length 0 */
    ProtobufCMessage *message;
    ck_assert_int_eq(message_unpack(&gimbal__hardware_report__descriptor, bytes, size,
                                    message_quota(size), &message, &err),
                     -ENOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "more than the"));
    free(bytes);
}
END_TEST

/* Two records of telemetry with hardly a field in them are no bomb. */
START_TEST(sparse_records_fit_the_quota)
{
    enum { COUNT = 20000 };
    Gimbal__StreamRecord record = GIMBAL__STREAM_RECORD__INIT;
    record.revision = 1;
    Gimbal__StreamRecord **records = xcalloc(COUNT, sizeof *records);
    for (size_t i = 0; i < COUNT; i++)
        records[i] = &record;
    Gimbal__StreamBatch batch = GIMBAL__STREAM_BATCH__INIT;
    batch.records = records;
    batch.n_records = COUNT;
    size_t size;
    void *bytes = message_pack(&batch.base, &size);
    ProtobufCMessage *message;
    ck_assert_int_eq(message_unpack(&gimbal__stream_batch__descriptor, bytes, size,
                                    message_quota(size), &message, NULL),
                     0);
    message_free(message);
    free(bytes);
    free(records);
}
END_TEST

START_TEST(a_field_of_a_number_that_is_none_is_refused)
{
    static const unsigned char wrong[][8] = {{0x80, 0x00, 0x00}, {0x80, 0x80, 0x80, 0x80, 0x10, 1}};
    static const size_t sizes[] = {3, 6};
    struct error err;
    ProtobufCMessage *message;
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(message_unpack(&gimbal__cancel_reply__descriptor, wrong[i], sizes[i],
                                        message_quota(sizes[i]), &message, &err),
                         -EPROTO);
        ck_assert_msg(strstr(err.text, "which is none") != NULL, "%s", err.text);
    }
}
END_TEST

START_TEST(text_that_is_no_utf8_is_refused_and_the_field_named)
{
    static const char *const wrong[] = {
        "\x80",      "\xc0\xaf",         "\xed\xa0\x80",     "\xf5\x80\x80\x80",
        "a\xe2\x82", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80",
        "\xff"};
    static const char *const right[] = {
        "", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong + sizeof right / sizeof *right; i++) {
        bool is_wrong = i < sizeof wrong / sizeof *wrong;
        struct error err;
        Gimbal__Device device = GIMBAL__DEVICE__INIT;
        device.profile_json =
            (char *)(is_wrong ? wrong[i] : right[i - sizeof wrong / sizeof *wrong]);
        Gimbal__Device *devices[] = {&device};
        Gimbal__HardwareReport report = GIMBAL__HARDWARE_REPORT__INIT;
        report.devices = devices;
        report.n_devices = 1;
        size_t size;
        void *bytes = message_pack(&report.base, &size);
        ProtobufCMessage *message = NULL;
        int rc = message_unpack(&gimbal__hardware_report__descriptor, bytes, size,
                                message_quota(size), &message, &err);
        ck_assert_msg(rc == (is_wrong ? -EINVAL : 0), "text %zu", i);
        if (is_wrong)
            ck_assert_ptr_nonnull(strstr(err.text, "'profile_json'"));
        message_free(message);
        free(bytes);
    }
}
END_TEST

/* The text of the member that a oneof does not have must not be looked at. */
START_TEST(only_the_member_that_a_oneof_has_is_looked_at)
{
    Gimbal__LogLine line = GIMBAL__LOG_LINE__INIT;
    line.text = (char *)"\xff";
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_LOG;
    record.log = &line;
    for (int is_wrong = 1; is_wrong >= 0; is_wrong--) {
        size_t size;
        void *bytes = message_pack(&record.base, &size);
        ProtobufCMessage *message = NULL;
        ck_assert_int_eq(message_unpack(&gimbal__telemetry_record__descriptor, bytes, size,
                                        message_quota(size), &message, NULL),
                         is_wrong ? -EINVAL : 0);
        message_free(message);
        free(bytes);
        line.text = (char *)"epoch 1";
    }
}
END_TEST

/* Valid frames with random bytes changed, cut and inserted: whatever comes is a message within
 * its quota or an error. What is wrong here shows under the sanitizers. */
START_TEST(changed_frames_are_messages_or_errors)
{
    size_t size, good = 0, bad = 0;
    unsigned char *bytes = pack_report(&size);
    Gimbal__Envelope envelope = GIMBAL__ENVELOPE__INIT;
    envelope.method = (char *)"ReportHardware";
    envelope.caller = (char *)"node-a";
    envelope.payload.data = bytes;
    envelope.payload.len = size;
    for (uint64_t round = 0; round < 20000; round++) {
        nng_msg *frame = envelope_encode(&envelope);
        uint64_t changes = random_below(1, round, 0, 6);
        for (uint64_t i = 1; i <= changes; i++) {
            unsigned char *body = nng_msg_body(frame);
            uint64_t draw = random_bits(1, round, i);
            size_t at = (size_t)random_below(2, round, i, nng_msg_len(frame));
            body[at] = (unsigned char)draw;
            if (draw >> 60 == 0 && at > 0)
                nng_msg_chop(frame, at);
            if (draw >> 60 == 1)
                nng_msg_append(frame, &draw, 1 + draw % 8);
            if (nng_msg_len(frame) == 0)
                break;
        }
        Gimbal__Envelope *decoded;
        ProtobufCMessage *message;
        int rc = envelope_decode(frame, &decoded, NULL);
        if (rc == 0) {
            rc = message_unpack(&gimbal__hardware_report__descriptor, decoded->payload.data,
                                decoded->payload.len, message_quota(decoded->payload.len), &message,
                                NULL);
            if (rc == 0)
                message_free(message);
            message_free(&decoded->base);
        }
        *(rc == 0 ? &good : &bad) += 1;
        nng_msg_free(frame);
    }
    /* Both kinds are well represented, so the changes reach deep enough. */
    ck_assert_uint_gt(good, 2000);
    ck_assert_uint_gt(bad, 2000);
    free(bytes);
}
END_TEST

SUITE(rpc_message)
{
    const TTest *const tests[] = {
        a_message_survives_its_packing,
        a_message_cut_inside_a_field_is_refused,
        a_bomb_of_empty_submessages_is_refused,
        sparse_records_fit_the_quota,
        a_field_of_a_number_that_is_none_is_refused,
        text_that_is_no_utf8_is_refused_and_the_field_named,
        only_the_member_that_a_oneof_has_is_looked_at,
        changed_frames_are_messages_or_errors,
    };
    return house_run("rpc message", tests, sizeof tests / sizeof *tests);
}

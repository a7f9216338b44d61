/* test_service.c - the Coordinator's table, statuses, addresses and backoff. */
#include "common/message/message.h"
#include "common/rpc/address.h"
#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"
#include "common/rpc/protocol.h"
#include "common/rpc/transport.h"
#include "proto/executor.pb-c.h"
#include "tests/common/rpc/fixture.h"

#include <errno.h>
#include <string.h>

START_TEST(every_row_is_the_descriptors_method_of_that_number)
{
    const ProtobufCServiceDescriptor *descriptor = service_coordinator.descriptor;
    ck_assert_uint_eq(descriptor->n_methods, COORDINATOR_METHOD_COUNT);
    for (unsigned i = 0; i < COORDINATOR_METHOD_COUNT; i++) {
        ck_assert_str_eq(service_coordinator.methods[i].name, descriptor->methods[i].name);
        ck_assert_int_eq(rpc_service_find(&service_coordinator, descriptor->methods[i].name),
                         (int)i);
    }
    ck_assert_int_eq(rpc_service_find(&service_coordinator, "Explode"), -1);
}
END_TEST

/* The kind of a method follows from what it takes and gives; so do the limits it must have. */
START_TEST(rows_agree_with_the_types_of_their_methods)
{
    for (unsigned i = 0; i < COORDINATOR_METHOD_COUNT; i++) {
        const struct rpc_method *row = &service_coordinator.methods[i];
        const ProtobufCMethodDescriptor *method = &service_coordinator.descriptor->methods[i];
        bool pushes = method->input == &gimbal__push_batch__descriptor;
        bool polls = method->input == &gimbal__stream_poll__descriptor;
        ck_assert_msg((row->kind == RPC_CLIENT_STREAM) == pushes, "%s", row->name);
        ck_assert_msg(!pushes || method->output == &gimbal__push_ack__descriptor, "%s", row->name);
        ck_assert_msg(!polls || row->kind == RPC_HELD, "%s", row->name);
        ck_assert_msg(polls == (method->output == &gimbal__stream_batch__descriptor), "%s",
                      row->name);
        ck_assert_msg(row->kind == RPC_UNARY || row->idempotent, "%s", row->name);
        ck_assert_msg(row->any_term == (i == COORDINATOR_HELLO), "%s", row->name);
        ck_assert_msg(row->roles && !(row->roles & ~(unsigned)RPC_EVERYBODY), "%s", row->name);
        ck_assert_msg(row->request_bytes_max >= 4096 && row->request_bytes_max <= 4 << 20, "%s",
                      row->name);
    }
    ck_assert(!service_coordinator.methods[COORDINATOR_SUBMIT].idempotent);
}
END_TEST

/* People read what a call asks for, never the name of its method. */
START_TEST(every_row_says_what_is_asked_for_in_words)
{
    for (unsigned i = 0; i < COORDINATOR_METHOD_COUNT; i++) {
        const struct rpc_method *row = &service_coordinator.methods[i];
        ck_assert_msg(row->asked && strncmp(row->asked, "to ", 3) == 0, "%s", row->name);
        ck_assert_msg(strcspn(row->asked, "ABCDEFGHIJKLMNOPQRSTUVWXYZ:.%") == strlen(row->asked),
                      "%s", row->name);
    }
}
END_TEST

/* So that unpacking recurses only as deep as our own files say. */
static void assert_not_within_itself(const ProtobufCMessageDescriptor *type,
                                     const ProtobufCMessageDescriptor **above, size_t depth)
{
    ck_assert_uint_lt(depth, 16);
    above[depth] = type;
    for (size_t i = 0; i < depth; i++)
        ck_assert_msg(above[i] != type, "%s contains itself", type->name);
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            assert_not_within_itself(type->fields[i].descriptor, above, depth + 1);
}

START_TEST(no_message_contains_itself)
{
    const ProtobufCMessageDescriptor *above[17];
    for (unsigned i = 0; i < COORDINATOR_METHOD_COUNT; i++) {
        assert_not_within_itself(service_coordinator.descriptor->methods[i].input, above, 0);
        assert_not_within_itself(service_coordinator.descriptor->methods[i].output, above, 0);
    }
    assert_not_within_itself(&gimbal__envelope__descriptor, above, 0);
    assert_not_within_itself(&gimbal__worker_record__descriptor, above, 0);
    assert_not_within_itself(&gimbal__telemetry_record__descriptor, above, 0);
    assert_not_within_itself(&gimbal__executor_event__descriptor, above, 0);
    assert_not_within_itself(&gimbal__executor_command__descriptor, above, 0);
}
END_TEST

/* https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
START_TEST(statuses_have_grpcs_numbers_and_names)
{
    ck_assert_int_eq(RPC_DEADLINE_EXCEEDED, 4);
    ck_assert_int_eq(RPC_FAILED_PRECONDITION, 9);
    ck_assert_int_eq(RPC_UNIMPLEMENTED, 12);
    ck_assert_int_eq(RPC_UNAUTHENTICATED, 16);
    ck_assert_str_eq(rpc_status_name(RPC_FAILED_PRECONDITION), "FAILED_PRECONDITION");
    ck_assert_str_eq(rpc_status_name(RPC_UNAVAILABLE), "UNAVAILABLE");
    ck_assert_int_eq(rpc_status_of_number(99), RPC_UNKNOWN);
}
END_TEST

START_TEST(every_status_can_be_told_by_an_errno)
{
    bool told[RPC_STATUS_COUNT] = {false};
    for (int error = 0; error < 134; error++) /* Linux has no more */
        told[rpc_status_of_errno(-error)] = true;
    for (unsigned i = 0; i < RPC_STATUS_COUNT; i++)
        ck_assert_msg(told[i], "%s", rpc_status_name((enum rpc_status)i));
    ck_assert_int_eq(rpc_status_of_errno(-EPERM), RPC_PERMISSION_DENIED);
    ck_assert_int_eq(rpc_status_of_errno(-EXDEV), RPC_UNKNOWN);
}
END_TEST

START_TEST(pauses_double_up_to_their_bound_and_jitter_takes_at_most_half)
{
    ck_assert_uint_eq(rpc_backoff_ms(0, 0), RPC_BACKOFF_MS_MIN);
    ck_assert_uint_eq(rpc_backoff_ms(1, 0), 2 * RPC_BACKOFF_MS_MIN);
    ck_assert_uint_eq(rpc_backoff_ms(3, 0), 8 * RPC_BACKOFF_MS_MIN);
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        uint32_t longest = rpc_backoff_ms(attempt, 0), shortest = rpc_backoff_ms(attempt, 0.999999);
        ck_assert_uint_le(longest, RPC_BACKOFF_MS_MAX);
        ck_assert_uint_ge(longest, attempt ? rpc_backoff_ms(attempt - 1, 0) : 1);
        ck_assert_uint_lt(shortest, longest);
        ck_assert_uint_ge(shortest, longest / 2);
    }
    ck_assert_uint_eq(rpc_backoff_ms(4000000000u, 0), RPC_BACKOFF_MS_MAX);
}
END_TEST

START_TEST(a_loopback_address_is_taken_apart)
{
    struct rpc_address address;
    char text[96];
    ck_assert_int_eq(rpc_address_parse("tcp://127.0.0.1:7070", &address, NULL), 0);
    ck_assert_str_eq(address.host, "127.0.0.1");
    ck_assert_uint_eq(address.port, 7070);
    ck_assert_str_eq(rpc_address_print(text, sizeof text, &address, 7071), "tcp://127.0.0.1:7071");
    ck_assert_int_eq(rpc_address_parse("tcp://[::1]:0", &address, NULL), 0);
    ck_assert_str_eq(address.host, "[::1]");
    ck_assert_int_eq(rpc_address_parse("tcp://localhost:1", &address, NULL), 0);
}
END_TEST

START_TEST(what_is_no_loopback_address_is_refused_in_words)
{
    static const char *const wrong[] = {"",
                                        "7070",
                                        "tcp://127.0.0.1",
                                        "tcp://127.0.0.1:70700",
                                        "tcp://:7070",
                                        "udp://127.0.0.1:1",
                                        "tcp://127.0.0.1:x",
                                        "tcp://127.0.0.1:",
                                        "tcp://127.0.0.1:-1"};
    struct rpc_address address;
    struct error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(rpc_address_parse(wrong[i], &address, &err) == -EINVAL, "%s", wrong[i]);
    ck_assert_int_eq(rpc_address_parse("tcp://0.0.0.0:7070", &address, &err), -EACCES);
    ck_assert_ptr_nonnull(strstr(err.text, "need TLS"));
    ck_assert_int_eq(rpc_address_parse("tcp://127.example.org:7070", &address, &err), -EACCES);
}
END_TEST

START_TEST(versions_one_minor_apart_understand_each_other)
{
    Gimbal__Envelope envelope = GIMBAL__ENVELOPE__INIT;
    struct error err;
    envelope.protocol_major = RPC_PROTOCOL_MAJOR;
    envelope.protocol_minor = RPC_PROTOCOL_MINOR + 1;
    ck_assert_int_eq(rpc_check_version(&envelope, &err), 0);
    envelope.protocol_minor = RPC_PROTOCOL_MINOR + 2;
    ck_assert_int_eq(rpc_check_version(&envelope, &err), -ESTALE);
    envelope.protocol_major = RPC_PROTOCOL_MAJOR + 1;
    envelope.protocol_minor = RPC_PROTOCOL_MINOR;
    ck_assert_int_eq(rpc_check_version(&envelope, &err), -ESTALE);
    ck_assert_ptr_nonnull(strstr(err.text, "protocol 2.0 meets protocol 1.0"));
}
END_TEST

/* What the top of server.h says. */
START_TEST(the_costs_of_calls_are_as_documented)
{
    const size_t mib = 1 << 20;
    ck_assert_uint_eq(rpc_service_request_bytes_max(&service_coordinator), 4 * mib);
    for (unsigned i = 0; i < COORDINATOR_METHOD_COUNT; i++) {
        const struct rpc_method *method = &service_coordinator.methods[i];
        size_t quota = message_quota(method->request_bytes_max);
        size_t envelope = ENVELOPE_BYTES_MAX + 2 * (ENVELOPE_BYTES_MAX + 4 * mib);
        ck_assert_uint_le(quota + envelope, 137 * mib);
        if (method->kind == RPC_HELD)
            ck_assert_uint_le(quota, mib / 10 * 21);
    }
}
END_TEST

SUITE(rpc_service)
{
    const TTest *const tests[] = {
        every_row_is_the_descriptors_method_of_that_number,
        rows_agree_with_the_types_of_their_methods,
        every_row_says_what_is_asked_for_in_words,
        no_message_contains_itself,
        statuses_have_grpcs_numbers_and_names,
        every_status_can_be_told_by_an_errno,
        pauses_double_up_to_their_bound_and_jitter_takes_at_most_half,
        a_loopback_address_is_taken_apart,
        what_is_no_loopback_address_is_refused_in_words,
        versions_one_minor_apart_understand_each_other,
        the_costs_of_calls_are_as_documented,
    };
    return house_run("rpc service", tests, sizeof tests / sizeof *tests);
}

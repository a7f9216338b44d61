/* test_streams.c - revisioned streams and sequence numbers, without a socket. */
#include "common/base/random.h"
#include "common/rpc/records.h"
#include "tests/common/rpc/fixture.h"

#include <errno.h>
#include <string.h>

START_TEST(a_reader_gets_what_came_after_its_revision)
{
    struct stream *stream = stream_create(3, 8);
    size_t count;
    ck_assert_int_eq(stream_after(stream, 3, 0, 1000, &count, NULL), 0);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(stream_append(stream, "one", 3), 1);
    ck_assert_uint_eq(stream_append(stream, "three", 5), 2);
    ck_assert_int_eq(stream_after(stream, 3, 1, 1000, &count, NULL), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(stream_get(stream, 2)->size, 5);
    ck_assert_mem_eq(stream_get(stream, 2)->data, "three", 5);
    stream_destroy(stream);
}
END_TEST

START_TEST(who_fell_behind_or_comes_from_elsewhere_is_out_of_range)
{
    struct stream *stream = stream_create(3, 4);
    struct error err;
    size_t count;
    for (int i = 0; i < 10; i++)
        stream_append(stream, &i, sizeof i);
    ck_assert_int_eq(stream_after(stream, 3, 6, 1000, &count, &err), 0); /* 7..10 are kept */
    ck_assert_uint_eq(count, 4);
    ck_assert_int_eq(stream_after(stream, 3, 5, 1000, &count, &err), -ERANGE);
    ck_assert_ptr_nonnull(strstr(err.text, "revisions 7 to 10"));
    ck_assert_int_eq(stream_after(stream, 3, 11, 1000, &count, &err), -ERANGE);
    ck_assert_int_eq(stream_after(stream, 3, UINT64_MAX, 1000, &count, &err), -ERANGE);
    ck_assert_int_eq(stream_after(stream, 2, 10, 1000, &count, &err), -ERANGE);
    ck_assert_ptr_nonnull(strstr(err.text, "term 2"));
    ck_assert_ptr_null(stream_get(stream, 6));
    ck_assert_ptr_null(stream_get(stream, 11));
    stream_destroy(stream);
}
END_TEST

START_TEST(what_everybody_has_may_be_forgotten)
{
    struct stream *stream = stream_create(3, 4);
    size_t count;
    stream_forget(stream, 5); /* nothing is there */
    for (int i = 0; i < 6; i++)
        stream_append(stream, &i, sizeof i);
    stream_forget(stream, 1); /* not any more */
    ck_assert_int_eq(stream_after(stream, 3, 2, 1000, &count, NULL), 0);
    stream_forget(stream, 4);
    ck_assert_ptr_null(stream_get(stream, 4));
    ck_assert_int_eq(stream_after(stream, 3, 3, 1000, &count, NULL), -ERANGE);
    ck_assert_int_eq(stream_after(stream, 3, 4, 1000, &count, NULL), 0);
    ck_assert_uint_eq(count, 2);
    stream_forget(stream, UINT64_MAX);
    ck_assert_int_eq(stream_after(stream, 3, 6, 1000, &count, NULL), 0);
    ck_assert_uint_eq(count, 0);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(stream_append(stream, &i, sizeof i), 7u + (unsigned)i);
    ck_assert_int_eq(stream_after(stream, 3, 6, 1000, &count, NULL), -ERANGE);
    ck_assert_int_eq(stream_after(stream, 3, 7, 1000, &count, NULL), 0);
    ck_assert_uint_eq(count, 4);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_batch_is_cut_by_bytes_but_never_empty)
{
    struct stream *stream = stream_create(1, 8);
    char bytes[100] = "";
    size_t count;
    for (int i = 0; i < 3; i++)
        stream_append(stream, bytes, sizeof bytes);
    stream_after(stream, 1, 0, 250, &count, NULL);
    ck_assert_uint_eq(count, 2);
    stream_after(stream, 1, 0, 10, &count, NULL);
    ck_assert_uint_eq(count, 1);
    stream_destroy(stream);
}
END_TEST

START_TEST(unacknowledged_records_are_sent_again_and_count_once)
{
    struct outbox *outbox = outbox_create(10);
    struct inbox inbox = {0};
    ProtobufCBinaryData records[10];
    uint64_t first;
    size_t skip;
    outbox_append(outbox, "a", 1);
    outbox_append(outbox, "b", 1);
    ck_assert_uint_eq(outbox_batch(outbox, 1000, 10, records, &first), 2);
    ck_assert_int_eq(inbox_accept(&inbox, first, 2, &skip, NULL), 0);
    ck_assert_uint_eq(skip, 0);
    /* The acknowledgement is lost, a third record comes. */
    outbox_append(outbox, "c", 1);
    ck_assert_uint_eq(outbox_batch(outbox, 1000, 10, records, &first), 3);
    ck_assert_int_eq(inbox_accept(&inbox, first, 3, &skip, NULL), 0);
    ck_assert_uint_eq(skip, 2);
    ck_assert_mem_eq(records[skip].data, "c", 1);
    outbox_acknowledge(outbox, inbox.acknowledged);
    ck_assert_uint_eq(outbox_count(outbox), 0);
    ck_assert_uint_eq(inbox.lost, 0);
    outbox_destroy(outbox);
}
END_TEST

START_TEST(a_full_outbox_drops_its_oldest_and_the_inbox_sees_how_many)
{
    struct outbox *outbox = outbox_create(2);
    struct inbox inbox = {0};
    ProtobufCBinaryData records[4];
    uint64_t first;
    size_t skip;
    outbox_append(outbox, "a", 1);
    outbox_batch(outbox, 1000, 4, records, &first);
    inbox_accept(&inbox, first, 1, &skip, NULL);
    outbox_acknowledge(outbox, inbox.acknowledged);
    for (const char *text = "bcdef"; *text; text++)
        outbox_append(outbox, text, 1);
    ck_assert_uint_eq(outbox_dropped(outbox), 3);
    ck_assert_uint_eq(outbox_batch(outbox, 1000, 4, records, &first), 2);
    ck_assert_uint_eq(first, 5);
    ck_assert_mem_eq(records[0].data, "e", 1);
    inbox_accept(&inbox, first, 2, &skip, NULL);
    ck_assert_uint_eq(skip, 0);
    ck_assert_uint_eq(inbox.lost, 3);
    outbox_destroy(outbox);
}
END_TEST

START_TEST(impossible_sequence_numbers_are_refused)
{
    struct inbox inbox = {0};
    size_t skip;
    ck_assert_int_eq(inbox_accept(&inbox, 0, 1, &skip, NULL), -EINVAL);
    ck_assert_int_eq(inbox_accept(&inbox, UINT64_MAX, 2, &skip, NULL), -EINVAL);
    ck_assert_uint_eq(inbox.acknowledged, 0);
}
END_TEST

/* Batches and acknowledgements are lost at random: every record that was not dropped is taken
 * exactly once, in order. */
START_TEST(whatever_is_lost_on_the_way_every_record_counts_once)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct outbox *outbox = outbox_create(1 + random_below(seed, 0, 0, 20));
        struct inbox inbox = {0};
        uint64_t written = 0, taken = 0, expected = 1, missing = 0;
        for (uint64_t step = 1; step < 400; step++) {
            uint64_t draw = random_bits(seed, 1, step);
            if (draw & 1) {
                written++;
                outbox_append(outbox, &written, sizeof written);
            }
            if (!(draw & 2))
                continue;
            ProtobufCBinaryData records[7];
            uint64_t first;
            size_t skip, count = outbox_batch(outbox, 48, 7, records, &first);
            if (count == 0 || draw & 4)
                continue; /* lost on its way there */
            ck_assert_int_eq(inbox_accept(&inbox, first, count, &skip, NULL), 0);
            for (size_t i = skip; i < count; i++) {
                uint64_t number;
                memcpy(&number, records[i].data, sizeof number);
                ck_assert_uint_ge(number, expected);
                missing += number - expected;
                expected = number + 1;
                taken++;
            }
            if (!(draw & 8)) /* else lost on its way back */
                outbox_acknowledge(outbox, inbox.acknowledged);
        }
        ck_assert_uint_eq(taken + missing, expected - 1);
        ck_assert_uint_le(inbox.lost, missing);
        ck_assert_uint_le(missing, outbox_dropped(outbox));
        outbox_destroy(outbox);
    }
}
END_TEST

START_TEST(each_client_and_stream_has_its_inbox_until_others_need_the_room)
{
    struct inboxes *inboxes = inboxes_create(3);
    inboxes_get(inboxes, 1, "a")->acknowledged = 10;
    inboxes_get(inboxes, 1, "b")->acknowledged = 20;
    inboxes_get(inboxes, 2, "a")->acknowledged = 30;
    ck_assert_uint_eq(inboxes_get(inboxes, 1, "a")->acknowledged, 10);
    ck_assert_uint_eq(inboxes_get(inboxes, 3, "a")->acknowledged, 0); /* in place of (1, b) */
    ck_assert_uint_eq(inboxes_get(inboxes, 1, "a")->acknowledged, 10);
    ck_assert_uint_eq(inboxes_get(inboxes, 2, "a")->acknowledged, 30);
    ck_assert_uint_eq(inboxes_get(inboxes, 1, "b")->acknowledged, 0);
    inboxes_destroy(inboxes);
}
END_TEST

SUITE(rpc_streams)
{
    const TTest *const tests[] = {
        a_reader_gets_what_came_after_its_revision,
        who_fell_behind_or_comes_from_elsewhere_is_out_of_range,
        what_everybody_has_may_be_forgotten,
        a_batch_is_cut_by_bytes_but_never_empty,
        unacknowledged_records_are_sent_again_and_count_once,
        a_full_outbox_drops_its_oldest_and_the_inbox_sees_how_many,
        impossible_sequence_numbers_are_refused,
        whatever_is_lost_on_the_way_every_record_counts_once,
        each_client_and_stream_has_its_inbox_until_others_need_the_room,
    };
    return house_run("rpc streams", tests, sizeof tests / sizeof *tests);
}

/* test_shards.c - headers of safetensors: what is printed is read again, and what lies is not
 * believed. */
#include "common/base/memory.h"
#include "tests/support/suite.h"
#include "worker/checkpoint/shard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define META(slices) "\"__metadata__\":{\"format\":\"gimbal-1\",\"slices\":\"{" slices "}\"}"
#define PLACE(name, low)                                                                           \
    "\\\"" name "\\\":{\\\"tensor\\\":\\\"" name                                                   \
    "\\\",\\\"part\\\":\\\"weight\\\",\\\"low\\\":[" low "],\\\"checksum\\\":\\\"0\\\"}"
#define ENTRY(name, shape, begin, end)                                                             \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]},"

START_TEST(a_header_is_read_as_it_was_printed)
{
    struct shard_slice slices[] = {
        {.tensor = (char *)"embed.token",
         .part = STATE_WEIGHT,
         .box = {2, {4, 0}, {8, 3}},
         .offset = 0,
         .bytes = 48,
         .checksum = 0xfedcba9876543210},
        {.tensor = (char *)"a \"strange\" name",
         .part = STATE_SECOND,
         .box = {1, {7}, {9}},
         .offset = 48,
         .bytes = 8,
         .checksum = 1},
    };
    size_t size;
    struct shard shard;
    struct error err;
    char *text = shard_print(slices, 2, &size);
    ck_assert_uint_eq(size % 64, 0);
    uint64_t length = (unsigned char)text[0] + 256u * (unsigned char)text[1];
    ck_assert_uint_eq(length, size - 8);
    int rc = shard_parse(text + 8, size - 8, 56, &shard, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_uint_eq(shard.count, 2);
    ck_assert_uint_eq(shard.start, size);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(shard.slices[i].tensor, slices[i].tensor);
        ck_assert_int_eq((int)shard.slices[i].part, (int)slices[i].part);
        ck_assert(box_equal(&shard.slices[i].box, &slices[i].box));
        ck_assert_uint_eq(shard.slices[i].offset, slices[i].offset);
        ck_assert_uint_eq(shard.slices[i].checksum, slices[i].checksum);
    }
    shard_finish(&shard);
    free(text);
}
END_TEST

static const struct {
    const char *json, *words;
} lies[] = {
    {"", "its header is not one of a checkpoint"},
    {"[]", "its header is not one of a checkpoint"},
    {"{}", "no __metadata__"},
    {"{\"__metadata__\":{\"format\":\"pt\",\"slices\":\"{}\"}}", "its format is 'pt'"},
    {"{\"__metadata__\":{\"format\":\"gimbal-1\",\"slices\":\"{\"}}", "__metadata__.slices: "},
    {"{" ENTRY("a", "4", "0", "16") ENTRY("b", "6", "8", "32")
         META(PLACE("a", "0") "," PLACE("b", "0")) "}",
     "weight 'b' begins at byte 8 of the data, before byte 16"},
    {"{" ENTRY("a", "4", "0", "16") ENTRY("b", "2", "24", "32")
         META(PLACE("a", "0") "," PLACE("b", "0")) "}",
     "weight 'b' begins at byte 24 of the data, beyond byte 16"},
    {"{" ENTRY("a", "4", "0", "16") META(PLACE("a", "0")) "}",
     "its tensors are 16 bytes, 32 are in the file"},
    {"{" ENTRY("a", "9", "0", "36") META(PLACE("a", "0")) "}",
     "a: bytes 0 to 36 lie outside of the data, 32 bytes"},
    {"{" ENTRY("a", "8", "-4", "28") META(PLACE("a", "0")) "}", "lie outside of the data"},
    {"{" ENTRY("a", "8", "32", "0") META(PLACE("a", "0")) "}", "lie outside of the data"},
    {"{" ENTRY("a", "7", "0", "32") META(PLACE("a", "0")) "}",
     "a: its shape and its 32 bytes disagree"},
    {"{" ENTRY("a", "4611686018427387905,8", "0", "32") META(PLACE("a", "0,0")) "}",
     "a: its shape and its 32 bytes disagree"},
    {"{" ENTRY("a", "9223372036854775807", "0", "32") META(PLACE("a", "1")) "}",
     "a: dim 0 is no piece of a tensor"},
    {"{" ENTRY("a", "-8", "0", "32") META(PLACE("a", "0")) "}", "a: dim 0 is no piece"},
    {"{" ENTRY("a", "8", "0", "32") META(PLACE("a", "-1")) "}", "a: dim 0 is no piece"},
    {"{" ENTRY("a", "8.0", "0", "32") META(PLACE("a", "0")) "}", "a: dim 0 is no piece"},
    {"{" ENTRY("a", "1,1,1,1,1,8", "0", "32") META(PLACE("a", "0,0,0,0,0,0")) "}",
     "a: shape and low are not lists of up to 5 numbers"},
    {"{" ENTRY("a", "8", "0", "32") META(PLACE("a", "0,0")) "}", "a: shape and low are not"},
    {"{" ENTRY("a", "8", "0", "32") META(PLACE("b", "0")) "}",
     "a: __metadata__.slices does not say where it lies"},
    {"{" ENTRY("a", "8", "0", "32") ENTRY("a", "8", "0", "32") META(PLACE("a", "0")) "}",
     "duplicate object key"},
    {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[16],\"data_offsets\":[0,32]}," META(
         PLACE("a", "0")) "}",
     "a: its dtype is BF16, F32 would be right"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,32,64]}," META(
         PLACE("a", "0")) "}",
     "a: no dtype, shape and data_offsets"},
};

START_TEST(a_header_that_lies_is_refused)
{
    struct shard shard;
    struct error err = {""};
    int rc = shard_parse(lies[_i].json, strlen(lies[_i].json), 32, &shard, &err);
    ck_assert_msg(rc == -EINVAL && strstr(err.text, lies[_i].words), "%s: %d %s", lies[_i].json, rc,
                  err.text);
}
END_TEST

SUITE(shards)
{
    TCase *tcase = tcase_create("headers");
    tcase_add_test(tcase, a_header_is_read_as_it_was_printed);
    tcase_add_loop_test(tcase, a_header_that_lies_is_refused, 0, (int)(sizeof lies / sizeof *lies));
    return suite_run("shards", tcase, NULL);
}

/* timeline.c - a step of a job, predicted and measured, for those who draw it. */
#include "coordinator/resources/timeline.h"

#include "coordinator/resources/resources.h"

#include <math.h>

/* Rounded to nanoseconds: more digits mean nothing. */
static json_t *seconds(double value)
{
    return resource_number(round(value * 1e9) / 1e9);
}

static json_t *box(const struct picture_box *box)
{
    int micro_batch = box->place.micro_batch;
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "lane", box_lane_name(box->place.lane), "section",
                     section_name(box->place.section), "micro_batch",
                     micro_batch >= 0 ? json_integer(micro_batch) : json_null(), "begin_s",
                     seconds(box->begin_s), "end_s", seconds(box->end_s));
}

static json_t *boxes(const struct picture_row *row)
{
    json_t *items = json_array();
    for (size_t i = 0; i < row->boxes.count; i++)
        json_array_append_new(items, box(&row->boxes.items[i]));
    return items;
}

/* null if the side is missing. */
static json_t *row_of(const struct picture_side *side, size_t index)
{
    if (!side)
        return json_null();
    const struct picture_row *row = &side->rows[index];
    return json_pack("{s:o, s:I, s:o}", "bubble", resource_number(row->bubble),
                     "instructions_left_out", (json_int_t)row->instructions_left, "boxes",
                     row->told ? boxes(row) : json_null());
}

static json_t *ranks(const struct resource_timeline *of, const struct picture_side *predicted)
{
    const struct picture *picture = of->picture;
    json_t *items = json_array();
    for (size_t i = 0; picture && i < picture->count; i++) {
        const struct picture_rank *rank = &picture->ranks[i];
        json_t *item = json_pack("{s:i, s:i, s:s?, s:o, s:o}", "rank", rank->rank, "stage",
                                 rank->stage, "device", rank->device, "predicted",
                                 row_of(predicted, i), "measured", row_of(of->measured, i));
        json_array_append_new(items, item);
    }
    return items;
}

/* Its length, and what its rows leave out. */
static json_t *side(const struct picture_side *side)
{
    size_t left_out = 0, without = 0;
    double left_out_s = 0;
    if (!side)
        return json_null();
    for (size_t i = 0; i < side->count; i++) {
        left_out += side->rows[i].boxes.left_out;
        left_out_s += side->rows[i].boxes.left_out_s;
        without += !side->rows[i].told;
    }
    return json_pack("{s:o, s:o, s:I, s:o, s:I}", "step_s", seconds(side->step_s), "bubble",
                     resource_number(side->bubble), "boxes_left_out", (json_int_t)left_out,
                     "boxes_left_out_s", seconds(left_out_s), "ranks_without_boxes",
                     (json_int_t)without);
}

json_t *resource_timeline(const struct resource_timeline *of)
{
    const struct picture *picture = of->picture;
    const struct picture_side *predicted =
        picture && picture->predicted.step_s > 0 ? &picture->predicted : NULL;
    json_t *measured = side(of->measured);
    if (of->measured) {
        json_object_set_new(measured, "step", json_integer((json_int_t)of->step));
        json_object_set_new(measured, "unix_s", json_real(of->unix_s));
    }
    json_t *members =
        json_pack("{s:s, s:I, s:s, s:b, s:i, s:I, s:o, s:s, s:o, s:s, s:o}", "job", of->job,
                  "epoch", (json_int_t)of->epoch, "plan", of->plan, "pending", of->pending,
                  "rank_count", of->rank_count, "ranks_left_out",
                  (json_int_t)(picture ? (size_t)picture->rank_count - picture->count : 0),
                  "predicted", side(predicted), "predicted_reason", of->predicted_why, "measured",
                  measured, "measured_reason", of->measured_why, "ranks", ranks(of, predicted));
    return resource_object("Timeline", members);
}

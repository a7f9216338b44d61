/* pretrained.c - finds our weights in the folder's tensors, and reads boxes from there. */
#include "worker/huggingface/pretrained.h"

#include "common/base/memory.h"
#include "common/models/huggingface.h"
#include "worker/huggingface/remarks.h"
#include "worker/huggingface/tensor_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where one of our weights comes from. */
struct source {
    const struct foreign_tensor *tensor;
    const struct huggingface_part *part;
};

struct pretrained {
    struct tensor_files files;
    struct sizes sizes; /* of dims of which they may have more than we */
    struct huggingface_tensor *tensors;
    size_t tensor_count;
    struct source *sources; /* by index of the graph's tensor */
    struct remarks remarks;
};

/* A tensor with its name, or without the prefix of it that files of a model without its head omit.
 * A tied table may be there under the head's name alone. */
static const struct foreign_tensor *find_theirs(const struct tensor_files *files,
                                                const struct huggingface_tensor *right)
{
    const struct foreign_tensor *tensor = tensor_files_find(files, right->name);
    if (!tensor)
        tensor = tensor_files_find(files, right->bare);
    return tensor || !right->twin ? tensor : tensor_files_find(files, right->twin);
}

/* The length of an axis of theirs. */
static int64_t length_there(const struct pretrained *pretrained,
                            const struct huggingface_tensor *right, int axis)
{
    int64_t length = axis == 0 && right->first ? sizes_get(&pretrained->sizes, right->first) : 0;
    return length ? length : right->shape[axis];
}

static bool has_shape(const struct pretrained *pretrained, const struct foreign_tensor *theirs,
                      const struct huggingface_tensor *right)
{
    if (theirs->axes != right->axes)
        return false;
    for (int i = 0; i < right->axes; i++)
        if (theirs->shape[i] != length_there(pretrained, right, i))
            return false;
    return true;
}

static const char *print_shape(char *out, size_t size, int axes, const int64_t *shape)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < axes && i < DIMS_MAX && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, i ? " x %" PRId64 : "%" PRId64, shape[i]);
    return out;
}

static int check_tensor(const struct pretrained *pretrained, const char *name,
                        const struct foreign_tensor *theirs, const struct huggingface_tensor *right,
                        struct error *err)
{
    char is[128], should[128];
    int64_t shape[DIMS_MAX];
    if (!theirs)
        return error_set(err, -EINVAL, "it has no tensor '%s'", name);
    if (theirs->dtype == DTYPE_FOREIGN)
        return error_set(err, -EINVAL, "'%s' is %s, one of F32, BF16 and F16 would be right", name,
                         theirs->dtype_name);
    if (has_shape(pretrained, theirs, right))
        return 0;
    for (int i = 0; i < right->axes; i++)
        shape[i] = length_there(pretrained, right, i);
    return error_set(err, -EINVAL, "'%s' is %s, the job's model needs %s", name,
                     print_shape(is, sizeof is, theirs->axes, theirs->shape),
                     print_shape(should, sizeof should, right->axes, shape));
}

/* A tied weight may be stored twice. The two must be equal, or transformers would not tie them. */
static int check_twin(const struct pretrained *pretrained, const struct foreign_tensor *theirs,
                      const struct huggingface_tensor *right, struct error *err)
{
    const struct foreign_tensor *twin =
        right->twin ? tensor_files_find(&pretrained->files, right->twin) : NULL;
    if (!twin || twin == theirs)
        return 0;
    int rc = check_tensor(pretrained, right->twin, twin, right, err);
    if (rc == 0 && !foreign_equal(twin, theirs))
        rc = error_set(err, -EINVAL,
                       "'%s' is another than '%s': the job's model is tied, and has one table for "
                       "both",
                       right->twin, right->name);
    return rc;
}

static int match_tensors(struct pretrained *pretrained, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < pretrained->tensor_count && rc == 0; i++) {
        const struct huggingface_tensor *right = &pretrained->tensors[i];
        const struct foreign_tensor *theirs = find_theirs(&pretrained->files, right);
        rc = check_tensor(pretrained, right->name, theirs, right, err);
        if (rc == 0)
            rc = check_twin(pretrained, theirs, right, err);
        for (int part = 0; part < right->part_count; part++)
            pretrained->sources[right->parts[part].tensor] =
                (struct source){theirs, &right->parts[part]};
    }
    return rc;
}

static int check_config(const char *folder, const struct job_model *config,
                        const struct graph *graph, struct sizes *sizes, struct error *err)
{
    json_t *theirs = NULL;
    int rc = tensor_files_json(folder, "config.json", &theirs, err);
    if (rc == 0)
        rc = huggingface_compare(config, graph, theirs, sizes, err);
    json_decref(theirs);
    return rc < 0 ? error_prefix(err, rc, "config.json") : 0;
}

int pretrained_open(const char *folder, const struct job_model *config, const struct graph *graph,
                    struct pretrained **out, struct error *err)
{
    struct pretrained *pretrained = xcalloc(1, sizeof *pretrained);
    pretrained->sources = xcalloc(graph->tensor_count, sizeof *pretrained->sources);
    int rc =
        huggingface_tensors(config, graph, &pretrained->tensors, &pretrained->tensor_count, err);
    if (rc == 0)
        rc = check_config(folder, config, graph, &pretrained->sizes, err);
    if (rc == 0)
        rc = tensor_files_open(folder, &pretrained->files, err);
    if (rc == 0)
        rc = match_tensors(pretrained, err);
    if (rc < 0) {
        pretrained_close(pretrained);
        return error_prefix(err, rc, "model.weights '%s'", folder);
    }
    *out = pretrained;
    return 0;
}

void pretrained_close(struct pretrained *pretrained)
{
    if (!pretrained)
        return;
    tensor_files_finish(&pretrained->files);
    huggingface_free(pretrained->tensors, pretrained->tensor_count);
    free(pretrained->sources);
    remarks_finish(&pretrained->remarks);
    free(pretrained);
}

void pretrained_compare(struct pretrained *pretrained, const struct job_config *job,
                        const struct tokenizer *tokenizer)
{
    remarks_make(job, sizes_get(&pretrained->sizes, 'v'), tokenizer, &pretrained->remarks);
}

const char *pretrained_remark(const struct pretrained *pretrained, size_t index)
{
    return index < pretrained->remarks.count ? pretrained->remarks.texts[index] : NULL;
}

size_t pretrained_files(const struct pretrained *pretrained, struct data_file **out)
{
    const struct tensor_files *files = &pretrained->files;
    *out = xcalloc(files->file_count, sizeof **out);
    for (size_t i = 0; i < files->file_count; i++)
        (*out)[i] = (struct data_file){.path = xstrdup(files->files[i].path),
                                       .size = files->files[i].file.size,
                                       .hash = file_hash(&files->files[i].file)};
    return files->file_count;
}

static void fill_box(const struct source *source, const struct box *box, float *out)
{
    const int64_t *step = source->part->step;
    int64_t at[DIMS_MAX], count = box_count(box), place = source->part->first;
    for (int dim = 0; dim < box->dims; dim++) {
        at[dim] = box->low[dim];
        place += at[dim] * step[dim];
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = foreign_element(source->tensor, place);
        for (int dim = box->dims - 1; dim >= 0; dim--) {
            place += step[dim];
            if (++at[dim] < box->high[dim])
                break;
            place -= box_length(box, dim) * step[dim];
            at[dim] = box->low[dim];
        }
    }
}

void pretrained_fill(const struct pretrained *pretrained, const struct program *program,
                     state_buffer_cb *buffer, void *context)
{
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        fill_box(&pretrained->sources[parameter->tensor], &parameter->box,
                 buffer(context, parameter->master));
    }
}

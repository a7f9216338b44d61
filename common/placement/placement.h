/* placement.h - how a tensor is distributed over the ranks of a mesh.
 *
 * A mesh axis plays one of three parts. It may split a dim of the tensor: every dim has an ordered
 * list of the axes that split it, major to minor. It may be partial: the ranks along it hold
 * summands of the same piece, and the tensor is their sum. Or it replicates: the ranks along it
 * hold copies.
 *
 * Everything rests on one routine, placement_slice(), which says what piece of the whole a rank
 * holds. Redistribution, sends between stages, checkpoints and moves from one plan to another are
 * all "fill my new box from the boxes of others".
 *
 * A mesh is the devices of a pipeline stage as a grid of small axes, fastest link first. The first
 * axis varies fastest with the rank. Sets of axes are bit masks, bit i for axis i. Devices may have
 * weights, positive integers that say how large their shares of the samples are; the share of a
 * coordinate along an axis is the sum of the weights of the devices that have it. */
#ifndef COMMON_PLACEMENT_PLACEMENT_H
#define COMMON_PLACEMENT_PLACEMENT_H

#include "common/graph/graph.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define AXES_MAX 6

struct mesh {
    int axes;
    int size[AXES_MAX];
    const int *weights; /* one per rank, borrowed; NULL: all equal */
};

/* The number of ranks along these axes: the product of their sizes. */
static inline int mesh_span(const struct mesh *mesh, unsigned axes)
{
    int span = 1;
    for (int i = 0; i < mesh->axes; i++)
        span *= axes >> i & 1 ? mesh->size[i] : 1;
    return span;
}

/* The number of ranks of the whole mesh. */
static inline int mesh_count(const struct mesh *mesh)
{
    return mesh_span(mesh, ~0u);
}

int mesh_coordinate(const struct mesh *mesh, int rank, int axis);
/* The coordinates on all axes; `at` has room for mesh->axes. */
void mesh_coordinates(const struct mesh *mesh, int rank, int *at);
/* The ranks that differ from this one only on the given axes, itself included, in ascending order:
 * the same list for every member. Fills `members` with mesh_span() ranks and returns the index of
 * `rank` among them. */
int mesh_group(const struct mesh *mesh, int rank, unsigned axes, int *members);

/* Placements are compared by memcmp, so unused entries must be 0. */
struct placement {
    uint8_t count[DIMS_MAX];          /* how many axes split each dim */
    uint8_t axis[DIMS_MAX][AXES_MAX]; /* which, major to minor */
    uint8_t partial;                  /* bit i: axis i is partial */
};

/* A whole tensor: its dims (letters, see graph/box.h) and their sizes. */
struct shape {
    int dims;
    char dim[DIMS_MAX + 1];
    int64_t size[DIMS_MAX];
    bool uneven; /* any dim may be cut into unequal pieces (storage); else as dim_divides() says */
};

/* Whether what is computed is cut into equal pieces along a dim of this letter. Samples are not,
 * and neither is a vocabulary, whose pieces then differ by one. */
static inline bool dim_cuts_equal(char letter)
{
    return letter != 'b' && letter != 'v';
}

/* Can a dim of this size be cut into so many pieces for that? A rank may be left without samples,
 * but not without a piece of a vocabulary. */
static inline bool dim_divides(char letter, int64_t size, int64_t parts)
{
    return dim_cuts_equal(letter) ? size % parts == 0 : letter == 'b' || size >= parts;
}

/* The whole tensor, with this many samples. */
struct shape shape_of(const struct tensor *tensor, int64_t samples);
struct box shape_box(const struct shape *shape);

static inline bool placement_equal(const struct placement *a, const struct placement *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The placement after all partial sums are reduced: no axis is partial. */
struct placement placement_settled(const struct placement *placement);
/* The axes that split this dim. */
unsigned placement_axes(const struct placement *placement, int dim);
/* The axes that split any dim. */
unsigned placement_split_axes(const struct placement *placement);
/* Let `axis` split `dim` as its minor-most axis. */
void placement_append(struct placement *placement, int dim, int axis);

/* The piece that a rank holds. A range [low, low + n) is cut at low + n x cumulative share / total,
 * axis by axis from major to minor. Dropping the minor-most axis therefore gives exactly the union
 * of the pieces along it, even if they are unequal. Weights of the mesh apply to dim b only. */
struct box placement_slice(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *placement, int rank);
/* Its range along one dim, to be written to `box`; `at` are the rank's coordinates. */
void placement_slice_dim(const struct mesh *mesh, const struct shape *shape,
                         const struct placement *placement, int dim, int rank, const int *at,
                         struct box *box);
/* The pieces of all members of the rank's group along these axes, in the order of mesh_group(). */
void placement_slices(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *placement, int rank, unsigned axes,
                      struct box *boxes);
/* Can every dim be cut into its number of pieces (dim_divides)? If not, *dim is the letter of the
 * first that cannot, and *parts the number of pieces. */
bool placement_divides(const struct mesh *mesh, const struct shape *shape,
                       const struct placement *placement, char *dim, int *parts);
/* The axes along which pieces differ in size, on a mesh without weights. */
unsigned placement_uneven_axes(const struct mesh *mesh, const struct shape *shape,
                               const struct placement *placement);
/* The elements of all ranks' pieces together, replicas and summands included. */
int64_t placement_elements(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *placement);
/* Format for people as "b[0] s[] h[2,1] +[]": the axes of each dim, then the partial axes.
 * Truncated to `size`; returns `out`. */
char *placement_print(char *out, size_t size, const char *dims, const struct placement *placement);

#endif

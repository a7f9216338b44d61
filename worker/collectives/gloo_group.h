/* gloo_group.h - the collectives of one group over Gloo's transfers; used by gloo.cc. */
#ifndef WORKER_COLLECTIVES_GLOO_GROUP_H
#define WORKER_COLLECTIVES_GLOO_GROUP_H

#include "worker/collectives/gloo_mesh.h"

namespace gimbal
{

enum call { REDUCE_ALL, REDUCE_PART, GATHER_PART, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, MESSAGE };

/* The name of a transfer on both ends, equal only if all of these are. */
uint64_t slot(uint64_t id, call call, enum element element, uint64_t mark, size_t count);

class group
{
  public:
    group(mesh &owner, const int *members, int size, int index, uint64_t identity);

    void all_reduce(enum element of, void *data, size_t count, enum reduction reduction);
    void reduce_scatter(enum element of, const collective_part *parts, int count);
    void all_gather(enum element of, const collective_part *parts, int count);
    void all_to_all(enum element of, const void *source, const size_t *sends, void *destination,
                    const size_t *receives);

    /* After a failure: cancel transfers, so that the caller may use its memory again. */
    void drop();

    mesh &world;
    std::string name; /* "{0,2,5}" */
    const std::vector<int> ranks;

  private:
    struct range {
        size_t offset, count;
    };

    void all_reduce_at_once(char *data, size_t count, size_t mark, enum reduction reduction);
    range chunk(size_t count, size_t index) const;
    size_t bytes(size_t count) const;
    char *copy(const void *source, size_t count, char *destination) const;
    char *scratch_for(size_t count);
    const char *source_of(const collective_part &part, size_t member) const;
    char *place_of(const collective_part &part, size_t member) const;
    void begin(enum element of);
    void receive(size_t member, call call, size_t mark, char *destination, size_t count);
    void send(size_t member, call call, size_t mark, const char *source, size_t count);
    void finish();
    void reduce(const char *own, const char *others, size_t stride, char *destination, size_t count,
                enum reduction reduction);

    const size_t me;
    const uint64_t id; /* the same on all members, and different from other groups' */
    std::vector<const void *> summands;
    std::unique_ptr<char[]> scratch; /* what others send to be reduced, and packed chunks */
    size_t scratch_bytes = 0;
    enum element element = ELEMENT_F32; /* of the current call */
    std::vector<transfer> under_way;
    deadline limit;
};

} // namespace gimbal

#endif

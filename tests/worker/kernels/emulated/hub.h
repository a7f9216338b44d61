/* hub.h - the meeting point of the members of a communicator in the emulated NCCL. Collectives are
 * matched by the order of each member's calls: the calls at the same place form a round. Messages
 * lie in mailboxes until they are received. */
#ifndef TESTS_WORKER_KERNELS_EMULATED_HUB_H
#define TESTS_WORKER_KERNELS_EMULATED_HUB_H

#include "tests/worker/kernels/emulated/nccl.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

enum hub_kind {
    HUB_ALL_REDUCE,
    HUB_REDUCE,
    HUB_BROADCAST,
    HUB_REDUCE_SCATTER,
    HUB_ALL_GATHER,
    HUB_SEND,
    HUB_RECEIVE
};

struct hub_operation {
    hub_kind kind;
    const void *source;
    void *destination;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t reduction;
    int peer; /* of a message; the root of a reduction or broadcast */
};

/* The collective at one place in the order of calls, from all members. */
struct hub_round {
    std::map<int, hub_operation> members;
    bool done;
};

/* A message; done: it was received. */
struct hub_mail {
    hub_operation sent;
    bool done;
};

/* Only accessed by work of the emulated runtime, or in emulated_change(). */
struct hub {
    int count, joined, left; /* members in all, of those that joined, and of those that left */
    std::set<int> aborted;   /* members */
    std::map<uint64_t, std::shared_ptr<hub_round>> rounds;
    std::map<int, uint64_t> begun; /* number of rounds, by member */
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<hub_mail>>> mails;
    /* Which member has made a call that needs which other, and whether by messages, which have
     * connections of their own. */
    std::set<std::tuple<int, int, bool>> reached;

    /* Whether the exchanges of this member end, with invalid results: it has aborted, or learns
     * that another member has. */
    bool is_over(int rank) const;
    /* Wait until all that have joined leave; they are all on one machine. */
    void leave();
};

/* One call of a member, that is a group of operations, and what it still waits for. */
struct hub_call {
    std::shared_ptr<hub> where;
    int rank;
    std::vector<hub_operation> operations;
    std::vector<std::shared_ptr<hub_round>> rounds;
    std::vector<std::shared_ptr<hub_mail>> sent;
    std::deque<hub_operation> receives;

    /* The first call of a kind connects members, each of which has to make it. */
    void reach();
    bool connected() const;
    /* Join rounds and send messages. */
    void begin();
    /* Receive messages that have come; returns whether the call has ended. */
    bool ended();

  private:
    bool receive(const hub_operation &operation);
};

/* End the process: a test has done what NCCL does not allow. */
[[noreturn]] void hub_die(const char *words);

#endif

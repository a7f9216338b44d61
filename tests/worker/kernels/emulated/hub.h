/* hub.h - where members of a communicator of the emulated NCCL meet: what they call at the same
 * place of their order is a round, and messages lie in boxes until they are fetched. */
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
    int peer; /* or root */
};

/* What all members do at the same place of their order. */
struct hub_round {
    std::map<int, hub_operation> members;
    bool done;
};

struct hub_mail {
    hub_operation sent;
    bool done;
};

/* All of it is looked at and changed by work of the emulated runtime only, or in
 * emulated_change(). */
struct hub {
    int count, joined, left; /* left: of those who joined */
    std::set<int> aborted;   /* members */
    std::map<uint64_t, std::shared_ptr<hub_round>> rounds;
    std::map<int, uint64_t> begun; /* rounds, by member */
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<hub_mail>>> mails;
    /* Who has called what needs whom, and whether by messages: these have ways of their own. */
    std::set<std::tuple<int, int, bool>> reached;

    /* What this member exchanges is over, with nothing of worth: it has aborted, or the network
     * tells it that another has. */
    bool is_over(int rank) const;
    /* All that have joined are on one machine: whoever leaves waits until the others do. */
    void leave();
};

/* What one call of a member still waits for. */
struct hub_call {
    std::shared_ptr<hub> where;
    int rank;
    std::vector<hub_operation> operations;
    std::vector<std::shared_ptr<hub_round>> rounds;
    std::vector<std::shared_ptr<hub_mail>> sent;
    std::deque<hub_operation> receives;

    /* A first call connects its members, each of whom has to come for it. */
    void reach();
    bool connected() const;
    void begin();
    /* Takes what has come meanwhile. */
    bool ended();

  private:
    bool receive(const hub_operation &operation);
};

/* A test has done what NCCL does not allow. */
[[noreturn]] void hub_die(const char *words);

#endif

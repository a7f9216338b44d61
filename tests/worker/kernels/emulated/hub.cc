/* hub.cc - performs the exchanges of a communicator: the member that comes last to a round computes
 * it for all, and the receiver of a message copies it. */
#include "tests/worker/kernels/emulated/hub.h"

#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "common/base/element.h"
}

void hub_die(const char *words)
{
    fprintf(stderr, "emulated NCCL: %s\n", words);
    abort();
}

namespace
{

size_t size_of(ncclDataType_t type)
{
    return type == ncclBfloat16 ? sizeof(uint16_t) : sizeof(float);
}

float number(const hub_operation &operation, size_t at)
{
    return operation.type == ncclBfloat16 ? bf16_widen(((const uint16_t *)operation.source)[at])
                                          : ((const float *)operation.source)[at];
}

/* A sum travels from member to member, in the element that it is of. */
float rounded(ncclDataType_t type, float value)
{
    return type == ncclBfloat16 ? bf16_widen(bf16_narrow(value)) : value;
}

float reduce(const hub_round &all, size_t at)
{
    const hub_operation &first = all.members.begin()->second;
    float value = number(first, at);
    for (auto member = std::next(all.members.begin()); member != all.members.end(); member++) {
        float other = number(member->second, at);
        value = first.reduction == ncclSum ? rounded(first.type, value + other)
                : other > value            ? other
                                           : value;
    }
    return value;
}

/* What every member is to have, one after the other. */
std::vector<float> compute(const hub_round &all)
{
    const hub_operation &first = all.members.begin()->second;
    std::vector<float> result;
    size_t reduced =
        first.kind == HUB_REDUCE_SCATTER ? first.count * all.members.size() : first.count;
    if (first.kind == HUB_BROADCAST)
        for (size_t i = 0; i < first.count; i++)
            result.push_back(number(all.members.at(first.peer), i));
    else if (first.kind == HUB_ALL_GATHER)
        for (const auto &member : all.members)
            for (size_t i = 0; i < first.count; i++)
                result.push_back(number(member.second, i));
    else
        for (size_t i = 0; i < reduced; i++)
            result.push_back(reduce(all, i));
    return result;
}

bool is_message(const hub_operation &operation)
{
    return operation.kind == HUB_SEND || operation.kind == HUB_RECEIVE;
}

void leave(const hub_operation &operation, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (operation.type == ncclBfloat16)
            ((uint16_t *)operation.destination)[i] = bf16_narrow(values[i]);
        else
            ((float *)operation.destination)[i] = values[i];
}

void perform(hub_round &all)
{
    const hub_operation first = all.members.begin()->second;
    for (const auto &member : all.members)
        if (member.second.kind != first.kind || member.second.count != first.count ||
            member.second.type != first.type || member.second.peer != first.peer)
            hub_die("members of a communicator call different things at the same place");
    std::vector<float> result = compute(all);
    for (const auto &member : all.members) {
        if (first.kind == HUB_REDUCE && member.first != first.peer)
            continue;
        if (first.kind == HUB_REDUCE_SCATTER)
            leave(member.second, result.data() + first.count * (size_t)member.first, first.count);
        else
            leave(member.second, result.data(), result.size());
    }
    all.done = true;
}

} // namespace

bool hub::is_over(int rank) const
{
    return aborted.count(rank) > 0 || (!aborted.empty() && !getenv("EMULATED_QUIET"));
}

void hub::leave()
{
    left++;
    emulated_notify();
    emulated_await([this] { return left >= joined; });
}

void hub_call::reach()
{
    for (const hub_operation &operation : operations)
        for (int other = 0; other < where->count; other++)
            if (!is_message(operation) || other == operation.peer)
                where->reached.insert({rank, other, is_message(operation)});
}

bool hub_call::connected() const
{
    bool all = true;
    for (const hub_operation &operation : operations)
        for (int other = 0; other < where->count; other++)
            if (!is_message(operation) || other == operation.peer)
                all = all && where->reached.count({other, rank, is_message(operation)}) > 0;
    return all || where->is_over(rank);
}

void hub_call::begin()
{
    for (const hub_operation &operation : operations) {
        if (operation.kind == HUB_SEND) {
            sent.push_back(std::make_shared<hub_mail>(hub_mail{operation, false}));
            where->mails[{rank, operation.peer}].push_back(sent.back());
        } else if (operation.kind == HUB_RECEIVE) {
            receives.push_back(operation);
        } else {
            std::shared_ptr<hub_round> &here = where->rounds[where->begun[rank]++];
            if (!here)
                here = std::make_shared<hub_round>();
            here->members[rank] = operation;
            rounds.push_back(here);
            if ((int)here->members.size() == where->count)
                perform(*here);
        }
    }
}

bool hub_call::receive(const hub_operation &operation)
{
    auto &box = where->mails[{operation.peer, rank}];
    if (box.empty())
        return false;
    const hub_operation &sent_there = box.front()->sent;
    if (sent_there.count != operation.count || sent_there.type != operation.type)
        hub_die("a message is of another length or type than is expected");
    memcpy(operation.destination, sent_there.source, operation.count * size_of(operation.type));
    box.front()->done = true;
    box.pop_front();
    emulated_notify();
    return true;
}

bool hub_call::ended()
{
    for (size_t left = receives.size(); left > 0; left--) {
        if (!receive(receives.front()))
            receives.push_back(receives.front());
        receives.pop_front();
    }
    bool done = receives.empty();
    for (const auto &round : rounds)
        done = done && round->done;
    for (const auto &mail : sent)
        done = done && mail->done;
    return done || where->is_over(rank);
}

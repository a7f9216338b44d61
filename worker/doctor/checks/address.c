/* address.c - the address at which ranks of other nodes reach those of this one. */
#include "worker/doctor/machine.h"

#include "common/rpc/address.h"
#include "worker/daemon/offer.h"
#include "worker/hardware/network.h"

#include <string.h>

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* Whether the coordinator is on another machine. */
static bool is_away(const char *coordinator)
{
    char source[NETWORK_ADDRESS_SIZE];
    struct error err;
    return offer_source(coordinator, source, &err) == 0 && !is_loopback(source);
}

static void look(void *scene, struct findings *out)
{
    static const char right[] = "--host-address IP, one of this machine's on the nodes' network";
    const struct machine *machine = scene;
    const struct worker_settings *settings = machine->settings;
    struct rpc_address coordinator;
    struct error err;
    if (!machine->report)
        return;
    if (offer_address(settings, machine->report, &err) < 0) {
        finding_block(out, right, "%s", err.text);
        return;
    }
    const char *address = machine->report->address;
    if (!is_loopback(address))
        finding_ok(out, "other nodes are given %s, and ranks can listen there", address);
    else if (is_away(settings->coordinator))
        finding_block(
            out, right,
            "other nodes are given %s, which is their own address, too: jobs on this node "
            "and others cannot start",
            address);
    else if (rpc_address_parse(settings->coordinator, &coordinator, &err) == 0 && coordinator.tls)
        finding_warn(out, right,
                     "other nodes are given %s, which is their own address, too: jobs on this "
                     "machine and others cannot start",
                     address);
    else
        finding_ok(out, "%s: without TLS, only workers on this machine can join a coordinator",
                   address);
}

const struct doctor_check check_address = {
    .name = "address",
    .about = "how other nodes reach this one",
    .cb = look,
};

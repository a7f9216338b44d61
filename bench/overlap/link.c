/* link.c - makes the link with ip(8) and tc(8). All of it vanishes when the two processes end. */
#include "bench/overlap/link.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const addresses[] = {"10.78.0.1", "10.78.0.2"};

const char *link_missing(void)
{
    if (geteuid() != 0)
        return "namespaces need root";
    if (system("command -v ip >/dev/null && command -v tc >/dev/null") != 0)
        return "there is no ip(8) or tc(8): install iproute2";
    if (system("unshare --net true 2>/dev/null") != 0)
        return "this kernel, or container, makes no namespaces";
    return NULL;
}

bool link_enter(void)
{
    return unshare(CLONE_NEWNET) == 0;
}

static bool run(const char *text)
{
    return system(text) == 0;
}

bool link_join(const pid_t hosts[2], const char *rate)
{
    char text[512];
    snprintf(text, sizeof text, "ip link add gb0 netns %d type veth peer name gb1 netns %d",
             (int)hosts[0], (int)hosts[1]);
    if (!run(text))
        return false;
    for (int host = 0; host < 2; host++) {
        snprintf(text, sizeof text,
                 "nsenter --net=/proc/%d/ns/net sh -c 'ip link set lo up && "
                 "ip addr add %s/24 dev gb%d && ip link set gb%d up && "
                 "tc qdisc add dev gb%d root tbf rate %s burst 256kb latency 100ms'",
                 (int)hosts[host], addresses[host], host, host, host, rate);
        if (!run(text))
            return false;
    }
    return true;
}

const char *link_address(int host)
{
    return addresses[host];
}

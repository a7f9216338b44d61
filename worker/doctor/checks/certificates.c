/* certificates.c - what lets this node in, and for how long. */
#include "worker/doctor/machine.h"

#include "common/trust/certificate.h"
#include "worker/daemon/pass.h"

#include <time.h>

#define DAY_S 86400
#define DAYS_SOON 30

/* Whole days until a certificate expires. */
static long days_left(const char *text)
{
    struct certificate_facts facts;
    if (certificate_read(text, &facts, NULL) < 0)
        return 0;
    return (long)((facts.not_after_s - (int64_t)time(NULL)) / DAY_S);
}

static void tell(const struct machine *machine, const struct pass *pass, bool joined,
                 struct findings *out)
{
    long own = days_left(pass->bundle->certificate);
    long authority = days_left(pass->bundle->authority);
    long least = own < authority ? own : authority;
    const char *which = own <= authority ? "tls.crt" : "ca.crt";
    const char *folder = pass->bundle->directory;
    if (least < DAYS_SOON)
        finding_warn(out, "'gimbal cluster init DIR --renew', and the new folder on every node",
                     "%s/%s expires in %ld day%s, and nobody is let in after that", folder, which,
                     least, least == 1 ? "" : "s");
    else if (joined)
        finding_ok(out, "%s/%s is valid for %ld days; node '%s' has joined", folder, which, least,
                   machine->settings->name);
    else
        finding_ok(out, "%s/%s is valid for %ld days; node '%s' will join with %s", folder, which,
                   least, machine->settings->name, machine->settings->join);
}

static void look(void *scene, struct findings *out)
{
    const struct machine *machine = scene;
    struct pass pass;
    struct error err;
    bool joined;
    if (!machine->settings->tls) {
        finding_ok(out, "none are needed: the coordinator is on this machine");
        return;
    }
    int rc = pass_open_kept(machine->settings, &pass, &joined, &err);
    if (rc < 0) {
        finding_block(out,
                      "the folder certs/worker from 'gimbal cluster init', readable only by the "
                      "worker's user, and a token from 'gimbal cluster token worker'",
                      "%s", err.text);
        return;
    }
    tell(machine, &pass, joined, out);
    pass_finish(&pass);
}

const struct doctor_check check_certificates = {
    .name = "certificates",
    .about = "what this node joins with",
    .cb = look,
};

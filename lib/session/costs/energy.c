#include "session/costs/energy.h"
#include "session/session.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "measure/costs/sums.h"

#define PERIOD 100000000u /* ns */
#define ZONE_BYTES 64     /* of a zone's folder, its end included: others are passed over */
#define FILE_BYTES 32     /* of a file in it */

const char *pki_energy_folder = "/sys/class/powercap";

static struct {
    bool on;
    pki_energy_account account;                  /* under the fold lock */
    char zones[PKI_ENERGY_COUNTERS][ZONE_BYTES]; /* by counter */
    char why_not[256];
    uint64_t next;
} x;

/* "intel-rapl:0/energy_uj" as J. */
static bool read_joules(const char *zone, const char *file, double *joules)
{
    char name[ZONE_BYTES + FILE_BYTES], text[32];
    snprintf(name, sizeof name, "%.*s/%.*s", ZONE_BYTES - 1, zone, FILE_BYTES - 1, file);
    if (!pki_small_file_in(pki_energy_folder, name, text, sizeof text) || *text < '0' ||
        *text > '9')
        return false;
    *joules = (double)strtoull(text, NULL, 10) / 1e6;
    return true;
}

/* "package-0", "package-0 dram": zones of a package are named after it. */
static void name_zone(const char *zone, char *out, size_t size)
{
    char file[ZONE_BYTES + FILE_BYTES], name[32] = "", parent[32] = "";
    const char *last = strrchr(zone, ':');
    snprintf(file, sizeof file, "%.*s/name", ZONE_BYTES - 1, zone);
    pki_small_file_in(pki_energy_folder, file, name, sizeof name);
    name[strcspn(name, "\n")] = '\0';
    if (last && strchr(zone, ':') != last) {
        snprintf(file, sizeof file, "%.*s/name", (int)(last - zone), zone);
        pki_small_file_in(pki_energy_folder, file, parent, sizeof parent);
        parent[strcspn(parent, "\n")] = '\0';
    }
    snprintf(out, size, "%s%s%.40s", parent, *parent ? " " : "", *name ? name : zone);
}

/* intel-rapl-mmio has the packages of intel-rapl once more. */
static int is_zone(const struct dirent *entry)
{
    return strchr(entry->d_name, ':') && !strstr(entry->d_name, "mmio") &&
           strlen(entry->d_name) < ZONE_BYTES;
}

static void add_zone(const char *zone, unsigned *unreadable)
{
    char name[80];
    double joules, range = 0;
    if (!read_joules(zone, "energy_uj", &joules)) {
        ++*unreadable;
        return;
    }
    read_joules(zone, "max_energy_range_uj", &range);
    name_zone(zone, name, sizeof name);
    int counter = pki_energy_counter_of(&x.account, name, range);
    if (counter >= 0)
        memcpy(x.zones[counter], zone, strlen(zone) + 1);
}

static void find_zones(void)
{
    struct dirent **entries;
    unsigned unreadable = 0;
    int count = scandir(pki_energy_folder, &entries, is_zone, alphasort);
    for (int i = 0; i < count; i++) {
        add_zone(entries[i]->d_name, &unreadable);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    if (count <= 0)
        snprintf(x.why_not, sizeof x.why_not, "this machine has no counters of energy (%.80s)",
                 pki_energy_folder);
    else if (unreadable)
        snprintf(x.why_not, sizeof x.why_not,
                 "%u of %d counters of energy cannot be read: on most systems only root may",
                 unreadable, count);
}

/* The files first: the fold waits for no system call. */
static void read_all(void)
{
    double joules[PKI_ENERGY_COUNTERS];
    bool read[PKI_ENERGY_COUNTERS];
    for (size_t i = 0; i < x.account.count; i++)
        read[i] = *x.zones[i] && read_joules(x.zones[i], "energy_uj", &joules[i]);
    pki_fold_lock();
    uint64_t now = pki_monotonic_ns();
    for (size_t i = 0; i < x.account.count; i++)
        if (read[i])
            pki_energy_read(&x.account, (int)i, joules[i], now);
    pki_energy_round(&x.account, now);
    pki_fold_unlock();
}

static void on_step(pki_fold *fold, const pki_step *step, uint64_t data)
{
    (void)fold, (void)data;
    if (!step->between)
        pki_energy_step(&x.account, step->kind, step->start, step->start + step->duration,
                        step->items);
}

static pk_status open_energy(pki_session *s)
{
    memset(&x, 0, sizeof x);
    pki_energy_begin(&x.account);
    if (!s->config.costs_energy)
        return PK_OK;
    find_zones();
    read_all();
    pki_fold_lock();
    pki_fold_now()->on_account[PKI_FOLD_ENERGY] = on_step;
    pki_fold_unlock();
    x.on = true;
    return PK_OK;
}

static void poll(pki_session *s)
{
    uint64_t now = x.on && x.account.count ? pki_monotonic_ns() : 0;
    (void)s;
    if (!now || now < x.next)
        return;
    x.next = now + PERIOD;
    read_all();
}

static void close_energy(pki_session *s)
{
    x.next = 0;
    poll(s);
}

void pki_energy_of_gpu(unsigned ordinal, double joules, uint64_t when)
{
    char name[32];
    snprintf(name, sizeof name, "gpu%u", ordinal);
    if (!x.on)
        return;
    pki_fold_lock();
    pki_energy_read(&x.account, pki_energy_counter_of(&x.account, name, 0), joules, when);
    pki_fold_unlock();
}

void pki_energy_of_clocks(unsigned ordinal, const char *why)
{
    if (!x.on)
        return;
    pki_fold_lock();
    pki_energy_held(&x.account, ordinal, why);
    pki_fold_unlock();
}

bool pki_energy_so_far(pki_energy_sums *out)
{
    *out = (pki_energy_sums){0};
    return !x.on || pki_energy_sum_up(&x.account, x.why_not, out);
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    pki_energy_sums sums;
    bool done = pki_energy_so_far(&sums) && pki_energy_fill(&sums, &out->energy);
    pki_energy_sums_finish(&sums);
    return done;
}

const pki_service pki_service_energy = {
    .name = "energy",
    .open = open_energy,
    .round = poll,
    .close = close_energy,
    .summarise = summarise,
};

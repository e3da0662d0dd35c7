#include "base/topdown.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/cpu_files.h"
#include "base/small_file.h"

#define PATH 512
#define DEVICES "/sys/bus/event_source/devices/"

const char *pki_topdown_root = "";

/* ---- what the kernel describes ---- */

/* "KEY0x" and one or two digits; what is behind them. NULL: it is not there. */
static const char *read_byte(const char *at, const char *key, uint64_t *byte)
{
    size_t n = strlen(key);
    size_t digits = at && strncmp(at, key, n) == 0 ? strspn(at + n, "0123456789abcdefABCDEF") : 0;
    if (digits < 1 || digits > 2)
        return NULL;
    *byte = strtoull(at + n, NULL, 16);
    return at + n + digits;
}

bool pki_topdown_config(const char *text, uint64_t *config)
{
    uint64_t event = 0, umask = 0;
    const char *end = read_byte(text, "event=0x", &event);
    end = read_byte(end, ",umask=0x", &umask);
    if (!end || (*end && strcmp(end, "\n") != 0))
        return false;
    *config = event | umask << 8;
    return true;
}

static bool read_file(const char *device, const char *name, char *out, size_t size)
{
    char path[PATH];
    int n = snprintf(path, sizeof path, "%s" DEVICES "%s/%s", pki_topdown_root, device, name);
    return n > 0 && (size_t)n < sizeof path && pki_small_file(path, out, size) > 0;
}

/* The processor's number among the kernel's sources of events. */
static bool read_type(const char *device, uint32_t *type)
{
    char text[16], *end = text;
    if (!read_file(device, "type", text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    *type = (uint32_t)strtoul(text, &end, 10);
    return *end == '\0' || strcmp(end, "\n") == 0;
}

/* False: one of them is not there, or not as it is known here. */
static bool read_described(const char *device, uint32_t type, pki_topdown *out)
{
    static const char *const names[PKI_PERF_MOST] = {
        "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound", "slots"};
    char file[48], text[64];
    for (size_t i = 0; i < PKI_PERF_MOST; i++) {
        pki_perf_event *event = &out->event[i];
        *event = (pki_perf_event){.name = names[i], .type = type};
        snprintf(file, sizeof file, "events/%s", names[i]);
        if (!read_file(device, file, text, sizeof text) ||
            !pki_topdown_config(text, &event->config))
            return false;
    }
    out->count = PKI_PERF_MOST;
    return true;
}

/* ---- what AMD's manuals describe ---- */

/* Bits 8 to 11 of an event's number are bits 32 to 35 of the register. */
#define AMD(event, umask)                                                                          \
    (((uint64_t)(event)&0xff) | (uint64_t)(umask) << 8 | ((uint64_t)(event) >> 8) << 32)

static bool is_known_zen(void)
{
    static const struct {
        unsigned long family, first, last;
    } known[] = {{0x19, 0x10, 0x1f},
                 {0x19, 0x60, 0xaf}, /* Zen 4 */
                 {0x1a, 0x00, 0x2f},
                 {0x1a, 0x40, 0x4f},
                 {0x1a, 0x60, 0x7f}};
    char vendor[32], family[16], model[16];
    if (!pki_cpu_info(pki_topdown_root, "vendor_id", vendor, sizeof vendor) ||
        strcmp(vendor, "AuthenticAMD") != 0 ||
        !pki_cpu_info(pki_topdown_root, "cpu family", family, sizeof family) ||
        !pki_cpu_info(pki_topdown_root, "model", model, sizeof model))
        return false;
    unsigned long f = strtoul(family, NULL, 10), m = strtoul(model, NULL, 10);
    for (size_t i = 0; i < PKI_COUNT_OF(known); i++)
        if (f == known[i].family && m >= known[i].first && m <= known[i].last)
            return true;
    return false;
}

static void fill_zen(uint32_t type, pki_topdown *out)
{
    static const pki_perf_event events[PKI_PERF_EVENTS] = {
        {"ops that retired", 0, AMD(0xc1, 0x00), false},
        {"ops that were dispatched", 0, AMD(0xaa, 0x07), false},
        {"slots without ops of the front end", 0, AMD(0x1a0, 0x01), false},
        {"slots that the back end stalled", 0, AMD(0x1a0, 0x1e), false},
    };
    for (size_t i = 0; i < PKI_PERF_EVENTS; i++) {
        out->event[i] = events[i];
        out->event[i].type = type;
    }
    out->count = PKI_PERF_EVENTS;
    out->counts_dispatched = true;
}

bool pki_topdown_find(pki_topdown *out, char *why_not, size_t size)
{
    static const char *const devices[] = {"cpu_core", "cpu"};
    uint32_t type = 0;
    size_t i = 0;
    memset(out, 0, sizeof *out);
    while (i < PKI_COUNT_OF(devices) && !read_type(devices[i], &type))
        i++;
    if (i == PKI_COUNT_OF(devices)) {
        pki_perf_explain(ENOENT, why_not, size);
        return false;
    }
    if (read_described(devices[i], type, out))
        return true;
    if (is_known_zen())
        fill_zen(type, out);
    else
        snprintf(why_not, size,
                 "this processor shows no counters of pipeline slots that are known here "
                 "(Intel's from Ice Lake on, AMD's Zen 4 and Zen 5 have them)");
    return out->count > 0;
}

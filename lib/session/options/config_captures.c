#include "session/options/config_captures.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "history/history.h"
#include "out/gz.h"
#include "session/captures/capture_path.h"
#include "session/options/config_text.h"

#define STEPS_DEFAULT 32u /* where there are captures */

static pk_status read_clauses(pki_config *c, pki_config_text capture)
{
    char why[160];
    if (!capture.text)
        return PK_OK;
    if (!pki_clauses_parse(capture.text, &c->capture, why, sizeof why))
        return pki_fail(PK_EINVAL, "%s: %s", capture.source, why);
    uint64_t longest = pki_clauses_longest(&c->capture),
             wanted = PKI_MAX(longest + 8, STEPS_DEFAULT);
    if (c->history_steps && c->history_steps < longest)
        return pki_fail(PK_EINVAL, "%s: a capture of %llu steps, and history_steps is %u",
                        capture.source, (unsigned long long)longest, c->history_steps);
    if (!c->history_steps)
        c->history_steps = (uint32_t)wanted;
    return PK_OK;
}

static pk_status read_pattern(pki_config *c, pki_config_text path)
{
    char kept[PATH_MAX], bad;
    const pki_path_fields fields = {c->world.rank, (int)c->world.pid, c->world.host};
    if (!pki_capture_path_prepare(path.text, kept) ||
        (!pki_path_expand(c->capture_path, PATH_MAX, kept, &fields, &bad) && !bad))
        return pki_fail(PK_EINVAL, "%s is longer than a path can be", path.source);
    if (!pki_path_expand(c->capture_path, PATH_MAX, kept, &fields, &bad))
        return pki_fail(PK_EINVAL, "%s: %%%c is none of %%s, %%r, %%p, %%h and %%%%", path.source,
                        bad);
    if (!pki_capture_path_is_one(c->capture_path))
        return pki_fail(PK_EINVAL, "%s has no %%s: each capture would replace the one before",
                        path.source);
    return PK_OK;
}

/* With a trace all that is kept is in it, too. */
static bool name_history(pki_config *c)
{
    return c->trace[0] || pki_capture_path_expand(c->capture_path, "history", c->history);
}

/* A trace shows all steps, and with a history alone nobody says which: CUPTI records all the time.
 * Where only captures are kept, what it would record otherwise is thrown away. */
static void read_kernels(pki_config *c)
{
    pki_clauses *k = &c->capture;
    bool any =
        k->slow != 0 || k->range_count || k->every || k->cycle.active || k->request || k->straggler;
    bool unsaid = k->kernels == PKI_KERNELS_UNSAID;
    c->cupti_armed =
        !c->cupti_window && (k->kernels == PKI_KERNELS_ARMED || (unsaid && any && !c->trace[0]));
    uint64_t room = c->history_steps - PKI_MIN(c->history_steps, PKI_CAPTURE_BEFORE + 1);
    k->behind = PKI_MIN(k->behind, room);
}

pk_status pki_config_captures(pki_config *c, const pk_options *o)
{
    const pki_config_text capture = pki_config_text_of(o->capture, "capture", "PK_CAPTURE");
    const pki_config_text path =
        pki_config_text_of(o->capture_path, "capture_path", "PK_CAPTURE_PATH");
    const pki_config_text usual = {"run-%r-%s.json", "capture_path"};
    pk_status s = read_clauses(c, capture);
    if (s || !c->history_steps)
        return s;
    read_kernels(c);
    if (!path.text && c->trace[0] && !pki_capture_path_derive(c->trace, c->capture_path))
        return pki_fail(PK_EINVAL, "trace_path is longer than a path can be");
    if (path.text || !c->trace[0])
        s = read_pattern(c, path.text ? path : usual);
    c->capture_compressed = pki_ends_with(c->capture_path, ".gz");
    if (!s && c->capture_compressed && !pki_gz_available())
        return pki_fail(PK_ENOTSUP, "%s %s: this build has no zlib", path.source, c->capture_path);
    if (!s && !name_history(c))
        return pki_fail(PK_EINVAL, "%s is longer than a path can be", path.source);
    return s;
}

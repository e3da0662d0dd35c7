#include "measure/thinning.h"

#include <math.h>

#include "base/compiler.h"
#include "core/thin.h"
#include "stats/buckets.h"

/* ---- what is known of thinned regions: how sure their figures are ---- */

#define TWO_SIDED_95 1.96 /* standard errors on either side that hold 95 of 100 */

/* Times are whole nanoseconds, if the clock is not coarser. */
#define LEAST_STEP_NS 1.0

/* Woodruff's interval (JASA 47, 1952): the share of calls below a quantile is estimated with a
 * known error; what lies at both ends of it is the quantile's. Both ends are known to within half a
 * bucket, as the quantile is itself, and to within the clock's step: a call that is seldom timed
 * takes a little longer than one that always is, and the next step of the clock may lie between. */
static void put_range(const pk_stats *stats, double q, double off_ns, double range[2])
{
    double off = TWO_SIDED_95 * sqrt(q * (1 - q)) * stats->sampling_error;
    double low = (double)pk_stats_quantile(stats, PKI_MAX(q - off, 0.0));
    double high = (double)pk_stats_quantile(stats, PKI_MIN(q + off, 1.0));
    range[0] = PKI_MAX(low - low / PKI_OCTAVE_BUCKETS - off_ns, 0.0);
    range[1] = high + high / PKI_OCTAVE_BUCKETS + off_ns;
}

pki_region_thinned pki_region_thinned_of(const pk_stats *s, uint64_t untraced, double step_ns,
                                         double pair_ns)
{
    pki_region_thinned out = {
        .calls = s->untimed + untraced, .untimed = s->untimed, .untraced = untraced};
    if (!s->untimed)
        return out;
    out.error = s->sampling_error;
    out.sum_error = (double)s->count * s->stddev * s->sampling_error;
    out.call_error = PKI_TIMED_PAIRS * pair_ns;
    double off = PKI_MAX(step_ns, LEAST_STEP_NS) + out.call_error;
    put_range(s, 0.50, off, out.p50);
    put_range(s, 0.90, off, out.p90);
    put_range(s, 0.95, off, out.p95);
    put_range(s, 0.99, off, out.p99);
    return out;
}

double pki_thinned_sum_range(const pki_region_thinned *t, uint64_t count)
{
    return TWO_SIDED_95 * t->sum_error + (double)count * t->call_error;
}

/* ---- which regions' calls are not all timed, so that perfkit keeps to its share ---- */

#define NEAR 0.85
#define AIM 0.65
#define AIM_WHEN_OVER 0.4 /* while more has been taken than may be */
#define ROOM 0.4
#define ROOM_LEFT 0.5
#define LEAST_SAVING 0.002 /* of what may be taken */
#define FIRST_STEP 8u
#define PATIENCE_LEAST 3u
#define PATIENCE_MOST 192u
#define SOON 10u   /* looks */
#define FEW 2000.0 /* records are too few to say what one costs */
#define OVER_MOST_NS 2e9
#define SPENT_ENOUGH 10u /* looks */

void pki_thinning_init(pki_thinning *p, double bound, bool traced, pki_thin_costs costs)
{
    *p = (pki_thinning){.bound = bound,
                        .traced = traced,
                        .costs = costs,
                        .scale = 1,
                        .patience = PATIENCE_LEAST,
                        .since_up = UINT32_MAX};
}

/* ---- what calls cost ---- */

static double beside_of(const pki_thinning *p, double timed, uint32_t thin)
{
    bool traced = p->traced && thin != PKI_THIN_UNTRACED;
    return timed * (p->costs.fold + (traced ? p->costs.format : 0));
}

static double owner_of(const pki_thinning *p, double timed, double untimed, uint32_t thin)
{
    double each = pki_thin_skips_calls(thin) ? p->costs.timed : p->costs.pair;
    return timed * each + untimed * p->costs.counted;
}

/* The same calls again, thinned so. */
static double cost_of(const pki_thinning *p, const pki_thin_region *r, uint32_t thin)
{
    double calls = (double)r->timed + (double)r->untimed;
    double timed = pki_thin_skips_calls(thin) ? PKI_THIN_PER_GAP * calls / thin : calls;
    return owner_of(p, timed, calls - timed, thin) + p->scale * beside_of(p, timed, thin);
}

static double all_cost(const pki_thinning *p, const pki_thin_region *regions, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += cost_of(p, &regions[i], regions[i].thin);
    return sum;
}

/* What has been taken, and of it what a collector's record costs here. */
static double measured_cost(pki_thinning *p, const pki_thin_input *input,
                            const pki_thin_region *regions, size_t count)
{
    double owner = 0, beside = 0, records = 0;
    for (size_t i = 0; i < count; i++) {
        const pki_thin_region *r = &regions[i];
        owner += owner_of(p, (double)r->timed, (double)r->untimed, r->thin);
        beside += beside_of(p, (double)r->timed, r->thin);
        records += (double)r->timed;
    }
    if (records >= FEW && beside > 0) {
        double scale = PKI_MIN(PKI_MAX(input->beside / beside, 0.2), 20.0);
        p->scale = (p->scale + scale) / 2;
    }
    return owner + input->beside;
}

/* ---- up and down the ladder ---- */

/* 0: there is no further step. */
static uint32_t next_down(const pki_thinning *p, uint32_t thin)
{
    if (thin == PKI_THIN_NEVER)
        return 0;
    if (thin == 0 && p->traced)
        return PKI_THIN_UNTRACED;
    if (thin < FIRST_STEP)
        return FIRST_STEP;
    return thin < PKI_THIN_MOST ? 2 * thin : 0;
}

static uint32_t next_up(const pki_thinning *p, uint32_t thin)
{
    if (thin > FIRST_STEP)
        return thin / 2;
    return thin == FIRST_STEP && p->traced ? PKI_THIN_UNTRACED : 0;
}

static double saving(const pki_thinning *p, const pki_thin_region *r)
{
    uint32_t thin = next_down(p, r->thin);
    return thin ? cost_of(p, r, r->thin) - cost_of(p, r, thin) : 0;
}

/* The one that costs most, of those where a step down saves anything worth its error: where the
 * bound cannot be held, regions with few calls keep their times. */
static pki_thin_region *costliest(const pki_thinning *p, double may, pki_thin_region *regions,
                                  size_t count)
{
    double least = LEAST_SAVING * may;
    pki_thin_region *most = NULL;
    double cost = 0;
    for (size_t i = 0; i < count; i++) {
        double mine = cost_of(p, &regions[i], regions[i].thin);
        if (mine > cost && saving(p, &regions[i]) > PKI_MAX(0.01 * mine, least)) {
            most = &regions[i];
            cost = mine;
        }
    }
    return most;
}

static bool thin_more(pki_thinning *p, double most, pki_thin_region *regions, size_t count)
{
    double cost = all_cost(p, regions, count);
    bool changed = false;
    pki_thin_region *r;
    while (cost > most && (r = costliest(p, most, regions, count))) {
        cost -= saving(p, r);
        r->thin = next_down(p, r->thin);
        changed = true;
    }
    return changed;
}

/* The one whose step up costs least, of those that are thinned. */
static pki_thin_region *cheapest(const pki_thinning *p, pki_thin_region *regions, size_t count,
                                 double *more)
{
    pki_thin_region *least = NULL;
    for (size_t i = 0; i < count; i++) {
        pki_thin_region *r = &regions[i];
        if (!r->thin || r->thin == PKI_THIN_NEVER)
            continue;
        double mine = cost_of(p, r, next_up(p, r->thin)) - cost_of(p, r, r->thin);
        if (!least || mine < *more) {
            least = r;
            *more = mine;
        }
    }
    return least;
}

/* One step for one region, unless steps cost nothing. */
static bool thin_less(pki_thinning *p, double most, pki_thin_region *regions, size_t count)
{
    double cost = all_cost(p, regions, count), more = 0;
    pki_thin_region *r;
    bool changed = false;
    while ((r = cheapest(p, regions, count, &more)) && cost + more <= most) {
        r->thin = next_up(p, r->thin);
        changed = true;
        if (more > 0.001 * most)
            break;
    }
    return changed;
}

static bool tighten(pki_thinning *p, double process, pki_thin_region *regions, size_t count)
{
    if (p->since_up < SOON)
        p->patience = PKI_MIN(2 * p->patience, PATIENCE_MOST);
    p->roomy = 0;
    p->since_up = UINT32_MAX;
    double aim = p->over > 0 ? AIM_WHEN_OVER : AIM;
    return thin_more(p, aim * p->bound * process, regions, count);
}

static bool loosen(pki_thinning *p, double process, pki_thin_region *regions, size_t count)
{
    if (++p->roomy < p->patience)
        return false;
    p->roomy = 0;
    bool changed = thin_less(p, ROOM_LEFT * p->bound * process, regions, count);
    p->since_up = changed ? 0 : p->since_up;
    return changed;
}

/* What perfkit's threads take is measured; what calls take is not, and beside other work it is less
 * than in a row. So of them no more is counted than they take where the processor has most to do
 * meanwhile: only what is beyond the bound even then, and stays it, is said to be. */
static void judge(pki_thinning *p, const pki_thin_input *input, const pki_thin_region *regions,
                  size_t count, bool changed)
{
    double sure = input->beside;
    for (size_t i = 0; i < count; i++)
        sure += (double)regions[i].timed * p->costs.pair_hidden +
                (double)regions[i].untimed * p->costs.counted_hidden;
    if (changed || sure <= p->bound * input->process) {
        p->spent = 0;
        p->sure = p->cpu = 0;
    } else {
        p->spent++;
        p->sure += sure;
        p->cpu += input->process;
    }
    p->beyond = p->spent >= SPENT_ENOUGH;
}

bool pki_thinning_adjust(pki_thinning *p, const pki_thin_input *input, pki_thin_region *regions,
                         size_t count)
{
    double took = measured_cost(p, input, regions, count), may = p->bound * input->process;
    p->share = input->process > 0 ? took / input->process : 0;
    p->over = PKI_MIN(PKI_MAX(p->over + took - may, 0.0), OVER_MOST_NS);
    p->since_up += p->since_up < UINT32_MAX;
    bool tight = took > NEAR * may, roomy = took < ROOM * may && p->over == 0, changed = false;
    if (tight)
        changed = tighten(p, input->process, regions, count);
    else if (roomy)
        changed = loosen(p, input->process, regions, count);
    p->roomy = roomy ? p->roomy : 0;
    judge(p, input, regions, count, changed);
    return changed;
}

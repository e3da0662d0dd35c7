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

/* Shares of the bound. */
#define FAR 1.1
#define NEAR 0.96
#define AIM 0.86
#define AIM_LEAST 0.4 /* while more has been taken than may be */
#define FILL 0.92
#define FILL_AT_ONCE 0.5
#define ROOM 0.82

#define PAY_BACK 10.0 /* looks */
#define MEAN_OF 8.0   /* looks */
#define MEAN_LEAST 3u /* looks */
#define LEAST_STEP 4u
#define OCTAVE_STEPS 8u
#define LEAST_SAVING 0.002 /* of what may be taken... */
#define LEAST_SAVED 0.01   /* ...and of what the region costs: by an octave, or a step before it */
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

/* What a record costs the collector here. */
static void learn(pki_thinning *p, double records, double forecast, double took)
{
    p->records += records;
    p->forecast += forecast;
    p->took += took;
    if (p->records < FEW || !(p->forecast > 0))
        return;
    double scale = PKI_MIN(PKI_MAX(p->took / p->forecast, 0.2), 20.0);
    p->scale = (p->scale + scale) / 2;
    p->records = p->forecast = p->took = 0;
}

static double measured_cost(pki_thinning *p, const pki_thin_input *input,
                            const pki_thin_region *regions, size_t count)
{
    double owner = 0, beside = 0, records = 0;
    for (size_t i = 0; i < count; i++) {
        const pki_thin_region *r = &regions[i];
        owner += owner_of(p, (double)r->timed, (double)r->untimed, r->thin);
        beside += beside_of(p, (double)r->timed, r->thin);
        records += (double)r->timed;
        if (!pki_thin_skips_calls(r->thin))
            continue;
        p->counted += (double)r->untimed;
        p->apart += (double)r->timed * (p->costs.timed - p->costs.pair);
    }
    learn(p, records, beside, input->beside);
    return owner + input->beside;
}

double pki_thinning_counted_ns(const pki_thinning *p)
{
    return p->costs.counted + (p->counted > 0 ? p->apart / p->counted : 0);
}

/* ---- up and down the ladder ---- */

/* From a power of two to the next there are eight steps, or as many as there are numbers. */
static uint32_t step_at(uint32_t thin)
{
    uint32_t step = 1;
    while (2 * step * OCTAVE_STEPS <= thin)
        step *= 2;
    return step;
}

/* 0: there is no further step. */
static uint32_t below(const pki_thinning *p, uint32_t thin)
{
    if (thin == PKI_THIN_NEVER)
        return 0;
    if (thin == 0 && p->traced)
        return PKI_THIN_UNTRACED;
    if (thin < LEAST_STEP)
        return LEAST_STEP;
    return thin < PKI_THIN_MOST ? thin + step_at(thin) : 0;
}

/* Timing takes longer where few calls are timed: the first steps may save nothing. */
static uint32_t next_down(const pki_thinning *p, const pki_thin_region *r)
{
    double is = cost_of(p, r, r->thin);
    uint32_t thin = below(p, r->thin);
    while (thin && cost_of(p, r, thin) >= is)
        thin = below(p, thin);
    return thin;
}

static uint32_t next_up(const pki_thinning *p, uint32_t thin)
{
    if (thin > LEAST_STEP)
        return thin - step_at(thin - 1);
    return thin == LEAST_STEP && p->traced ? PKI_THIN_UNTRACED : 0;
}

/* Is a step down worth its error? */
static bool saves_enough(const pki_thinning *p, const pki_thin_region *r, double may)
{
    double is = cost_of(p, r, r->thin);
    uint32_t thin = next_down(p, r);
    double least = PKI_MAX(LEAST_SAVED * is, LEAST_SAVING * may);
    if (pki_thin_skips_calls(r->thin))
        least /= OCTAVE_STEPS;
    return thin && is - cost_of(p, r, thin) > least;
}

/* The one that costs most, of those where a step down saves anything worth its error: where the
 * bound cannot be held, regions with few calls keep their times. */
static pki_thin_region *costliest(const pki_thinning *p, double may, pki_thin_region *regions,
                                  size_t count)
{
    pki_thin_region *most = NULL;
    double cost = 0;
    for (size_t i = 0; i < count; i++) {
        double mine = cost_of(p, &regions[i], regions[i].thin);
        if (mine > cost && saves_enough(p, &regions[i], may)) {
            most = &regions[i];
            cost = mine;
        }
    }
    return most;
}

/* By so many steps that this is saved, but not below half of what it costs: then another's turn may
 * have come. What was saved. */
static double go_down(const pki_thinning *p, pki_thin_region *r, double wanted, double may)
{
    double was = cost_of(p, r, r->thin), saved = 0;
    while (saved < PKI_MIN(wanted, was / 2) && saves_enough(p, r, may)) {
        r->thin = next_down(p, r);
        saved = was - cost_of(p, r, r->thin);
    }
    return saved;
}

static bool thin_more(const pki_thinning *p, double cost, double most, pki_thin_region *regions,
                      size_t count)
{
    bool changed = false;
    pki_thin_region *r;
    while (cost > most && (r = costliest(p, most, regions, count))) {
        cost -= go_down(p, r, cost - most, most);
        changed = true;
    }
    return changed;
}

static double price_of_step_up(const pki_thinning *p, const pki_thin_region *r)
{
    return cost_of(p, r, next_up(p, r->thin)) - cost_of(p, r, r->thin);
}

/* The one whose step up costs least, of those that are thinned. */
static pki_thin_region *cheapest(const pki_thinning *p, pki_thin_region *regions, size_t count)
{
    pki_thin_region *least = NULL;
    double price = 0;
    for (size_t i = 0; i < count; i++) {
        pki_thin_region *r = &regions[i];
        if (!r->thin || r->thin == PKI_THIN_NEVER)
            continue;
        double mine = price_of_step_up(p, r);
        if (!least || mine < price) {
            least = r;
            price = mine;
        }
    }
    return least;
}

/* By a step, and by as many more as cost no more than this, within an octave. What they cost. */
static double go_up(const pki_thinning *p, pki_thin_region *r, double room)
{
    double was = cost_of(p, r, r->thin), price;
    uint32_t least = r->thin / 2;
    do {
        r->thin = next_up(p, r->thin);
        price = cost_of(p, r, r->thin) - was;
    } while (r->thin > least && price + price_of_step_up(p, r) <= room);
    return price;
}

static bool thin_less(const pki_thinning *p, double cost, double most, pki_thin_region *regions,
                      size_t count)
{
    pki_thin_region *r;
    bool changed = false;
    while ((r = cheapest(p, regions, count)) && cost + price_of_step_up(p, r) <= most) {
        cost += go_up(p, r, most - cost);
        changed = true;
    }
    return changed;
}

/* What was taken too much is paid back within some looks. */
static bool tighten(pki_thinning *p, double cost, double may, pki_thin_region *regions,
                    size_t count)
{
    if (p->since_up < SOON)
        p->patience = PKI_MIN(2 * p->patience, PATIENCE_MOST);
    p->roomy = 0;
    p->since_up = UINT32_MAX;
    double aim = PKI_MAX(AIM - p->over / (PAY_BACK * may), AIM_LEAST);
    cost = PKI_MAX(cost, all_cost(p, regions, count));
    return thin_more(p, cost, aim * may, regions, count);
}

/* Forecasts are worse, the further ahead: beyond half of the bound what is taken is doubled at most
 * at one look. */
static bool loosen(pki_thinning *p, double cost, double may, pki_thin_region *regions, size_t count)
{
    if (++p->roomy < p->patience)
        return false;
    p->roomy = 0;
    cost = PKI_MAX(cost, all_cost(p, regions, count));
    double most = PKI_MIN(FILL * may, PKI_MAX(FILL_AT_ONCE * may, 2 * cost));
    bool changed = thin_less(p, cost, most, regions, count);
    p->since_up = changed ? 0 : p->since_up;
    return changed;
}

/* Over the looks since something was changed, and of many the last ones. */
static void take_mean(pki_thinning *p, double share)
{
    p->steady += p->steady < UINT32_MAX;
    p->mean += (share - p->mean) / PKI_MIN((double)p->steady, MEAN_OF);
}

/* What came up has stayed there. */
static void relax(pki_thinning *p)
{
    if (p->since_up == SOON)
        p->patience = PKI_MAX(p->patience / 2, PATIENCE_LEAST);
    p->since_up += p->since_up < UINT32_MAX;
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
    take_mean(p, p->share / p->bound);
    relax(p);
    bool far = took > FAR * may, tight = p->steady >= MEAN_LEAST && p->mean > NEAR;
    bool roomy = !far && p->mean < ROOM && p->over == 0, changed = false;
    if (far || tight)
        changed = tighten(p, far ? took : p->mean * may, may, regions, count);
    else if (roomy)
        changed = loosen(p, p->mean * may, may, regions, count);
    p->roomy = roomy ? p->roomy : 0;
    p->steady = changed ? 0 : p->steady;
    judge(p, input, regions, count, changed);
    return changed;
}

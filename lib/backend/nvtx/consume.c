/* lib/backend/nvtx/consume.c - a thread's ranges, as NVTX's users call them.
 *
 * Each domain has a stack of its own on each thread; perfkit has one per thread. So what is open is
 * kept with its domain (nvtx/user.h), also while no session is open, and a pop finds what it ends.
 * A range that is popped while another domain's is open inside it closes that one too, and its pop
 * then finds it closed.
 */
#include "backend/nvtx/user.h"

#include "core/registry.h"

static PKI_COLD int level_below(const pki_nvtx_user *u, const pki_nvtx_domain *domain)
{
    for (unsigned i = u->open; i-- > 0;)
        if (u->ranges[i].domain == domain)
            return u->ranges[i].level;
    return -1;
}

static inline int level_of_next(const pki_nvtx_user *u, const pki_nvtx_domain *domain)
{
    if (u->open == 0)
        return 0;
    const pki_nvtx_open *top = &u->ranges[u->open - 1];
    if (PKI_LIKELY(top->domain == domain))
        return top->level + 1;
    return level_below(u, domain) + 1;
}

/* Member by member: what is read again soon, and in other sizes, must not be stored as a whole. */
static inline int open_one(pki_nvtx_user *u, const pki_nvtx_domain *domain, pk_region *region)
{
    int level = level_of_next(u, domain);
    pki_nvtx_open *r = &u->ranges[u->open++];
    r->domain = domain;
    r->level = level;
    r->session = pki_nvtx_session_now();
    r->region = region;
    if (PKI_UNLIKELY(!region))
        return level;
    pk_region_begin_on_(region);
    r->offset = (uint32_t)pki_load(&pki_self->state);
    return level;
}

static void add_work(pk_region *region, const pki_work *work)
{
    if (work->bytes || work->flops)
        pk_region_add_on_(region, work->bytes, work->flops);
    if (work->payload_type)
        pki_region_payload(region, (pki_payload_type)work->payload_type, work->payload);
}

/* event NULL: no session wants it. */
PKI_COLD int pki_nvtx_push(pki_nvtx_domain *domain, const pki_nvtx_event *event)
{
    pki_nvtx_user *u = pki_nvtx_find_user();
    if (!u || u->open == PKI_NVTX_OPEN_MOST) {
        if (u)
            u->over++;
        if (event)
            pki_registry_refuse_region();
        return NVTX_NO_PUSH_POP_TRACKING;
    }
    if (event && u->knows != pki_load(&pki_nvtx_wanted))
        pki_nvtx_catch_up(u);
    int level = open_one(u, domain, event ? event->region : NULL);
    if (event)
        add_work(event->region, &event->work);
    return level;
}

/* Has this thread pushed before in the session, and is there room for one more? */
static inline bool is_ready(const pki_nvtx_user *u)
{
    return u->knows == pki_load(&pki_nvtx_wanted) && u->open < PKI_NVTX_OPEN_MOST;
}

static PKI_COLD int push_first(pki_nvtx_domain *domain, const nvtxEventAttributes_t *attr)
{
    if (domain->ours)
        return NVTX_NO_PUSH_POP_TRACKING;
    if (!pki_nvtx_consuming())
        return pki_nvtx_push(domain, NULL);
    pki_nvtx_event event = pki_nvtx_event_of(domain, attr);
    return pki_nvtx_push(domain, &event);
}

static PKI_COLD void add_attributes(const pki_nvtx_domain *domain, pk_region *region,
                                    const nvtxEventAttributes_t *attr, pki_nvtx_meaning meaning)
{
    pki_work work = {0};
    pki_nvtx_read_attributes(domain, attr, meaning, &work);
    add_work(region, &work);
}

int pki_nvtx_push_ex(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attr)
{
    pki_nvtx_user *u = pki_nvtx_self;
    pki_nvtx_meaning meaning;
    pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (PKI_UNLIKELY(!is_ready(u) || domain->ours))
        return push_first(domain, attr);
    pk_region *region = pki_nvtx_region_in(u, domain, attr, &meaning);
    int level = open_one(u, domain, region);
    if (PKI_UNLIKELY(pki_nvtx_has_payload(attr)))
        add_attributes(domain, region, attr, meaning);
    return level;
}

static PKI_COLD int push_text_first(const char *message)
{
    if (!pki_nvtx_consuming())
        return pki_nvtx_push(pki_nvtx_domain_of(NULL), NULL);
    pki_nvtx_event event = pki_nvtx_event_of_text(message);
    return pki_nvtx_push(pki_nvtx_domain_of(NULL), &event);
}

int pki_nvtx_push_text(const char *message)
{
    pki_nvtx_user *u = pki_nvtx_self;
    pki_nvtx_meaning meaning;
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(NULL);
    if (PKI_UNLIKELY(!is_ready(u)))
        return push_text_first(message);
    return open_one(u, domain, pki_nvtx_region_of(u, domain, message, false, 0, &meaning));
}

/* Not if it has been closed already: a region of that name further out must stay open. */
static inline void end_range(const pki_nvtx_open *r, const pki_work *more)
{
    pk_region *region = r->region;
    if (PKI_UNLIKELY(!region || r->session != pki_nvtx_session_now() ||
                     (uint32_t)pki_load(&pki_self->state) < r->offset))
        return;
    if (more)
        add_work(region, more);
    pk_region_end_on_(region);
}

/* Ranges of other domains that are open inside the one at i end with it. */
static PKI_COLD int pop_below(pki_nvtx_user *u, const pki_nvtx_domain *domain, const pki_work *more)
{
    unsigned i = u->open;
    if (u->over) { /* which domain's it was, nobody knows */
        u->over--;
        return NVTX_NO_PUSH_POP_TRACKING;
    }
    while (i > 0 && u->ranges[i - 1].domain != domain)
        i--;
    if (i-- == 0)
        return -1; /* more pops than pushes */
    int level = u->ranges[i].level;
    end_range(&u->ranges[i], more);
    for (unsigned above = i + 1; above < u->open; above++)
        u->ranges[above].region = NULL;
    memmove(&u->ranges[i], &u->ranges[i + 1], (u->open - i - 1) * sizeof *u->ranges);
    u->open--;
    return level;
}

static inline int pop_from(const pki_nvtx_domain *domain, const pki_work *more)
{
    pki_nvtx_user *u = pki_nvtx_self;
    if (PKI_UNLIKELY(u->open == 0 || u->over))
        return pop_below(u, domain, more);
    const pki_nvtx_open *top = &u->ranges[u->open - 1];
    if (PKI_UNLIKELY(top->domain != domain))
        return pop_below(u, domain, more);
    u->open--;
    end_range(top, more);
    return top->level;
}

int pki_nvtx_pop(nvtxDomainHandle_t handle)
{
    return pop_from(pki_nvtx_domain_of(handle), NULL);
}

int pki_nvtx_pop_default(void)
{
    return pop_from(pki_nvtx_domain_of(NULL), NULL);
}

int pki_nvtx_pop_with(const pki_nvtx_domain *domain, const pki_work *more)
{
    return pop_from(domain, more);
}

void pki_nvtx_mark(const pki_nvtx_event *event)
{
    pki_nvtx_user *u = pki_nvtx_find_user();
    pki_work work = event->work;
    if (u && u->knows != pki_load(&pki_nvtx_wanted))
        pki_nvtx_catch_up(u);
    if (!work.payload_type && work.bytes) {
        work.payload = work.bytes;
        work.payload_type = PKI_PAYLOAD_UNSIGNED;
    }
    pki_mark_payload(event->region, (pki_payload_type)work.payload_type, work.payload);
}

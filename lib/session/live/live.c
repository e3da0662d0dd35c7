/* lib/session/live/live.c - what goes on, put into the arena for who looks from outside
 * (tools/live). */
#include "session/service.h"

/* Slots are linked from the newest on, and stay where they are. */
static void publish_table(const pki_session *s, uint64_t *offset, const pki_table *table)
{
    if (table->first)
        pki_store_release(offset, pki_arena_offset(s->arena, table->first));
}

static void publish_kinds(pki_thread *t, const pki_thread_fold *alone)
{
    for (size_t kind = 0; kind < PKI_COUNT_OF(t->kinds); kind++)
        pki_store(&t->kinds[kind], alone->kinds[kind]);
}

static void publish(pki_session *s)
{
    pki_live *live = &s->arena->header->live;
    pki_fold_lock();
    const pki_fold *fold = pki_fold_now();
    publish_table(s, &live->totals, &fold->totals);
    publish_table(s, &live->streams, &fold->streams);
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        if (t->index < fold->thread_count)
            publish_kinds(t, &fold->threads[t->index]);
    }
    pki_fold_unlock();
    pki_store(&live->round_ticks, pki_ticks(s->config.monotonic));
}

const pki_service pki_service_live = {
    .name = "live",
    .folded = publish,
};

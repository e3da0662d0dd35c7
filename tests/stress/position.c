/* How far a thread's ring has come, asked by others while it goes round and round: laps and offset
 * are two words, and must be read as one.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "base/memory.h"
#include "core/join.h"
#include "core/names.h"
#include "core/ring.h"
#include "kit.h"

#define RECORDS 64u

static pki_thread *block;
static uint64_t recorded; /* by the owner's count, once an end has returned */
static bool done;

/* A block of its own, which no session knows; one region in five has work and takes two slots. */
static void *go_round(void *argument)
{
    pk_region region = {.name = "", .id = PKI_NAME_TOO_MANY, .file = ""};
    pki_thread *mine = pki_own;
    pki_thread_be(block);
    for (uint64_t i = 0, dropped = 0; recorded < kit_scaled(1000000); i++) {
        if (block->dropped > dropped) /* the ring is full: let the other side run */
            sched_yield();
        dropped = block->dropped;
        pk_region_begin_on_(&region);
        if (i % 5 == 0)
            pk_region_add_on_(&region, 1, 0);
        pk_region_end_on_(&region);
        __atomic_store_n(&recorded, i + 1 - block->dropped, __ATOMIC_RELEASE);
    }
    pki_thread_be(mine);
    __atomic_store_n(&done, true, __ATOMIC_RELEASE);
    return argument;
}

static uint64_t look(void)
{
    pki_position at = pki_thread_position(block);
    must_equal(at.bytes % sizeof(pki_record), 0);
    must(pki_depth_in(at.state) <= 1);
    return at.bytes / sizeof(pki_record) - at.others;
}

/* What it records may be ahead of its count by the region in hand, and by the second slot of it. */
static void watch(void)
{
    uint64_t most = 0;
    for (uint64_t looks = 0; !__atomic_load_n(&done, __ATOMIC_ACQUIRE); looks++) {
        uint64_t before = __atomic_load_n(&recorded, __ATOMIC_ACQUIRE);
        uint64_t seen = look();
        uint64_t after = __atomic_load_n(&recorded, __ATOMIC_ACQUIRE);
        must(seen >= before && seen <= after + 2);
        if (looks % 4 == 0) { /* the collector's part */
            pki_store_release(&block->released, pki_thread_head(block));
            pki_store_release(&block->losses_folded, pki_load_acquire(&block->losses_made));
        }
        most = seen > most ? seen : most;
    }
    must_equal(look(), recorded);
    printf("%llu regions, %llu dropped\n", (unsigned long long)recorded,
           (unsigned long long)block->dropped);
    must(recorded > RECORDS);
}

static pki_registry alone;

static int make_block(void **state)
{
    (void)state;
    pki_owned file;
    alone.arena = pki_mem_file(&file, "position") ? pki_arena_create(&file, 4 << 20) : NULL;
    block = pki_arena_claim(alone.arena, sizeof *block + RECORDS * sizeof(pki_record));
    pki_block_init(block, (pki_record *)(block + 1), RECORDS * (uint32_t)sizeof(pki_record), 0);
    block->registry = &alone;
    return 0;
}

static int drop_block(void **state)
{
    (void)state;
    pki_arena_destroy(alone.arena);
    return 0;
}

static void laps_and_offset_are_one(void **state)
{
    pthread_t owner;
    (void)state;
    must(pthread_create(&owner, NULL, go_round, NULL) == 0);
    watch();
    must(pthread_join(owner, NULL) == 0);
}

static void fill(pk_region *region)
{
    for (unsigned i = 0; i < 2 * RECORDS; i++) {
        pk_region_begin_on_(region);
        pk_region_end_on_(region);
    }
}

/* What is told of lost calls has bounded room: the ring's has to wait for it. */
static void losses_wait_to_be_folded(void **state)
{
    pk_region region = {.name = "", .id = PKI_NAME_TOO_MANY, .file = ""};
    pki_thread *mine = pki_own;
    (void)state;
    pki_thread_be(block);
    for (unsigned i = 0; i < 4 * PKI_LOSSES; i++) {
        fill(&region);
        pki_store(&block->released, pki_thread_head(block));
        must(block->losses_made <= PKI_LOSSES);
    }
    uint64_t before = block->dropped;
    fill(&region);
    must_equal(block->dropped, before + 2 * RECORDS); /* there would be room for 63 */
    block->losses_folded = block->losses_made;
    fill(&region);
    must_equal(block->dropped, before + 2 * RECORDS + RECORDS + 1);
    pki_thread_be(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(laps_and_offset_are_one, make_block, drop_block),
        cmocka_unit_test_setup_teardown(losses_wait_to_be_folded, make_block, drop_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

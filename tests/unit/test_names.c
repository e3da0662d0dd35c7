/* Interning: what is the same name, what is kept of it, and many threads at once. */
#include "core/names.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_region(const pk_region *region, uint32_t kind, const char *name)
{
    const pki_name *n = pki_name_at(region->id);
    assert_string_equal(region->name, name);
    assert_int_equal(region->kind, kind);
    assert_non_null(n);
    assert_true(n->id == region->id && n->kind == kind && n->length == strlen(name));
    assert_string_equal(n->name, name);
    assert_int_equal(pki_region_id_of(region), region->id);
}

static void same_name_same_pointer(void **state)
{
    char name[] = "dynamic";
    (void)state;
    pk_region *first = pk_region_named(name);
    expect_region(first, PK_OTHER, "dynamic");
    strcpy(name, "dynamic"); /* another time, the same bytes */
    assert_ptr_equal(pk_region_named(name), first);
    memset(name, 'x', 3); /* copied, not kept */
    expect_region(first, PK_OTHER, "dynamic");
    assert_ptr_not_equal(pk_region_named("Dynamic"), first);
    assert_ptr_not_equal(pk_region_named("dynami"), first);
    assert_ptr_not_equal(pk_region_named("dynamic "), first);
}

static void kinds_are_different_names(void **state)
{
    pk_region *all[6];
    (void)state;
    for (int kind = PK_OTHER; kind <= PK_WAIT; kind++) {
        all[kind] = pk_region_named_of((pk_kind)kind, "kind");
        expect_region(all[kind], (uint32_t)kind, "kind");
        for (int k = 0; k < kind; k++)
            assert_int_not_equal(all[k]->id, all[kind]->id);
    }
    assert_ptr_equal(pk_region_named("kind"), all[PK_OTHER]);
    assert_ptr_equal(pk_region_named_of((pk_kind)6, "kind"),
                     all[PK_OTHER]); /* out of range: not said */
    assert_ptr_equal(pk_region_named_of((pk_kind)PKI_KIND_COUNTER, "kind"), all[PK_OTHER]);
    assert_ptr_equal(pk_region_named_of((pk_kind)UINT32_MAX, "kind"), all[PK_OTHER]);
}

static void places_in_the_source_share_a_name(void **state)
{
    static pk_region here = PK_REGION_OF(PK_IO, "place"), there = PK_REGION_OF(PK_IO, "place");
    static pk_region other = PK_REGION("place");
    (void)state;
    assert_int_equal(pki_region_id_of(&here), 0); /* nobody has used it */
    assert_int_equal(here.id, 0);
    uint32_t id = pki_region_id(&here);
    assert_true(id >= PKI_NAME_FIRST && here.id == id);
    assert_int_equal(pki_region_id_of(&there), id);
    assert_int_equal(there.id, 0);
    assert_int_equal(pki_region_id(&there), id);
    assert_int_not_equal(pki_region_id(&other), id);
    assert_int_equal(pk_region_named_of(PK_IO, "place")->id, id);
    assert_true(here.line == there.line && strstr(here.file, "test_names"));
}

static void no_name(void **state)
{
    (void)state;
    expect_region(pk_region_named(""), PK_OTHER, "(unnamed)");
    assert_ptr_equal(pk_region_named(NULL), pk_region_named(""));
    assert_ptr_equal(pk_region_named("(unnamed)"), pk_region_named(""));
    assert_string_equal(pk_counter_named(NULL, NULL)->name, "(unnamed)");
    assert_string_equal(pk_counter_named("", "")->unit, "");
}

static void long_names_are_cut(void **state)
{
    char name[302], cut[256];
    (void)state;
    memset(name, 'n', sizeof name);
    name[255] = 0;
    pk_region *fits = pk_region_named(name);
    expect_region(fits, PK_OTHER, name);
    strcpy(cut, name);
    memset(name + 255, 'm', 45);
    name[300] = 0;
    pk_region *longer = pk_region_named(name);
    expect_region(longer, PK_OTHER, cut);
    assert_ptr_equal(longer, fits);
    name[254] = 0;
    assert_ptr_not_equal(pk_region_named(name), fits);
    assert_int_equal(strlen(pk_counter_named(name, cut)->unit), 255);
}

static void any_bytes(void **state)
{
    static const char *const names[] = {"\x01\x02\xFF\xFE", "\xC3\xA9t\xC3\xA9", "\"quoted\"\\",
                                        "a\nb", "\xF0\x9F\x9A\x80"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_region(pk_region_named(names[i]), PK_OTHER, names[i]);
}

static void variants(void **state)
{
    static pk_region attention = PK_REGION_OF(PK_COMPUTE, "attention");
    (void)state;
    pk_region *a = pk_region_variant(&attention, "seq", 512),
              *b = pk_region_variant(&attention, "seq", -7);
    expect_region(a, PK_COMPUTE, "attention[seq=512]");
    expect_region(b, PK_COMPUTE, "attention[seq=-7]");
    assert_ptr_equal(pk_region_variant(&attention, "seq", 512), a);
    assert_int_not_equal(a->id, attention.id);
    const pki_name *n = pki_name_at(b->id);
    assert_true(n->value == -7 && n->key_length == 3);
    assert_string_equal(n->key, "seq");
    expect_region(pk_region_variant(&attention, "n", INT64_MIN), PK_COMPUTE,
                  "attention[n=-9223372036854775808]");
    expect_region(pk_region_variant(&attention, "n", INT64_MAX), PK_COMPUTE,
                  "attention[n=9223372036854775807]");
    expect_region(pk_region_variant(&attention, NULL, 1), PK_COMPUTE, "attention[value=1]");
    expect_region(pk_region_variant(&attention, "", 1), PK_COMPUTE, "attention[value=1]");
    expect_region(pk_region_variant(a, "heads", 8), PK_COMPUTE, "attention[seq=512][heads=8]");
}

/* Many more than there are places for known ones, asked for again and again. */
static void each_of_many_variants_stays_itself(void **state)
{
    static pk_region one = PK_REGION("one"), two = PK_REGION("two");
    static pk_region *seen[2][3000];
    (void)state;
    for (int64_t i = 0; i < 3000; i++) {
        seen[0][i] = pk_region_variant(&one, "n", i);
        seen[1][i] = pk_region_variant(&two, "n", i);
    }
    for (int64_t i = 2999; i >= 0; i--) {
        char wanted[64], key[] = "n";
        snprintf(wanted, sizeof wanted, "two[n=%lld]", (long long)i);
        assert_ptr_equal(pk_region_variant(&one, key, i), seen[0][i]);
        assert_ptr_equal(pk_region_variant(&two, key, i), seen[1][i]);
        assert_string_equal(seen[1][i]->name, wanted);
        assert_ptr_not_equal(pk_region_variant(&two, "m", i % 10), seen[1][i % 10]);
    }
}

/* The end is what tells variants apart. */
static void variants_of_long_names(void **state)
{
    char name[300], key[300], wanted[300];
    (void)state;
    memset(name, 'b', sizeof name);
    name[255] = 0;
    pk_region *base = pk_region_named(name);
    pk_region *one = pk_region_variant(base, "seq", 1), *two = pk_region_variant(base, "seq", 2);
    assert_ptr_not_equal(one, two);
    snprintf(wanted, sizeof wanted, "%.248s[seq=1]", name);
    expect_region(one, PK_OTHER, wanted);
    memset(key, 'k', sizeof key);
    key[299] = 0;
    pk_region *long_key = pk_region_variant(base, key, INT64_MIN);
    assert_int_equal(strlen(long_key->name), 255);
    snprintf(wanted, sizeof wanted, "[%.80s=-9223372036854775808]", key);
    assert_string_equal(long_key->name + 255 - strlen(wanted), wanted);
    assert_true(pki_name_at(long_key->id)->key_length <= PKI_NAME_BYTES);
}

static void counters_are_not_regions(void **state)
{
    static pk_counter here = PK_COUNTER("both", "bytes");
    static pk_region region = PK_REGION("both");
    (void)state;
    uint32_t counter_id = pki_counter_id(&here), region_id = pki_region_id(&region);
    assert_int_not_equal(counter_id, region_id);
    assert_int_equal(pki_name_at(counter_id)->kind, PKI_KIND_COUNTER);
    pk_counter *named = pk_counter_named("both", "bytes");
    assert_int_equal(named->id, counter_id);
    assert_string_equal(named->name, "both");
    assert_string_equal(named->unit, "bytes");
    assert_ptr_equal(pk_counter_named("both", "other unit"),
                     named); /* the first one's unit stays */
    assert_string_equal(pk_counter_named("bare", NULL)->unit, "");
}

static void ids_that_were_never_given(void **state)
{
    (void)state;
    assert_null(pki_name_at(0));
    assert_null(pki_name_at(pki_name_count()));
    assert_null(pki_name_at(PKI_NAMES_MAX));
    assert_null(pki_name_at(UINT32_MAX));
    assert_string_equal(pki_name_at(PKI_NAME_TOO_MANY)->name, "(too many names)");
    assert_string_equal(pki_name_at(PKI_NAME_STEP)->name, "step");
    for (uint32_t id = 1; id < pki_name_count(); id++)
        assert_int_equal(pki_name_at(id)->id, id);
}

static void errno_is_the_programs(void **state)
{
    (void)state;
    errno = 4711;
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "errno-%d", i);
        pk_region_variant(pk_region_named(name), "i", i);
    }
    assert_int_equal(errno, 4711);
}

#define THREADS 8
#define NAMES 3000

static pthread_barrier_t barrier;
static pk_region *found[THREADS][NAMES];

/* All at once, each in another order; statics are shared, so their first use is everybody's. */
static void *intern_all(void *argument)
{
    static pk_region shared = PK_REGION_OF(PK_WAIT, "shared by threads");
    size_t mine = (size_t)argument;
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < NAMES; i++) {
        size_t k = mine % 2 ? (i * 1009) % NAMES : i;
        char name[32];
        snprintf(name, sizeof name, "thread-%zu", k);
        found[mine][k] = pk_region_named(name);
        if (strcmp(found[mine][k]->name, name) != 0)
            return "another name";
    }
    return pki_region_id(&shared) == pk_region_named_of(PK_WAIT, "shared by threads")->id
               ? NULL
               : "another id";
}

static void many_threads_get_the_same(void **state)
{
    pthread_t threads[THREADS];
    uint32_t before = pki_name_count();
    (void)state;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, intern_all, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
        assert_memory_equal(found[i], found[0], sizeof found[0]);
    }
    assert_int_equal(pki_name_count(), before + NAMES + 1);
    pthread_barrier_destroy(&barrier);
}

#define ROUNDS 2000

static unsigned round_of[2];
static pk_region *raced[2][ROUNDS];

/* Two threads, nose to nose at every name: whoever comes second to the lock finds it there. */
static void *race(void *argument)
{
    size_t mine = (size_t)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        char name[32];
        snprintf(name, sizeof name, "race-%u", i);
        __atomic_store_n(&round_of[mine], i + 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&round_of[!mine], __ATOMIC_SEQ_CST) < i + 1)
            sched_yield();
        raced[mine][i] = pk_region_named(name);
    }
    return NULL;
}

static void races_have_one_winner(void **state)
{
    pthread_t other;
    uint32_t before = pki_name_count();
    (void)state;
    assert_int_equal(pthread_create(&other, NULL, race, (void *)1), 0);
    race((void *)0);
    pthread_join(other, NULL);
    assert_memory_equal(raced[0], raced[1], sizeof raced[0]);
    assert_int_equal(pki_name_count(), before + ROUNDS);
}

static pk_region function_at(const char *signature, const char *file, uint32_t line)
{
    return (pk_region){.name = signature, .file = file, .line = line, .spare = {1}};
}

static void functions_are_places(void **state)
{
    pk_region first = function_at("helper", "src/a.c", 10), again = first;
    pk_region other = function_at("helper", "src/b.c", 10);
    pk_region third = function_at("helper", "src/a.c", 11);
    (void)state;
    assert_int_equal(pki_region_id(&first), pki_region_id(&again));
    expect_region(pk_region_named("helper"), PK_OTHER, "helper");
    assert_int_equal(first.id, pk_region_named("helper")->id);
    assert_int_equal(pki_region_id_of(&other), 0);
    assert_int_equal(pki_region_id(&other), pk_region_named("helper (b.c:10)")->id);
    assert_int_equal(pki_region_id(&third), pk_region_named("helper (a.c:11)")->id);
    assert_int_equal(pki_region_id_of(&other), other.id);
    pk_region lambdas[] = {function_at("f(int)::<lambda(int)>", "a.cpp", 1),
                           function_at("f(int)::<lambda(int)>", "a.cpp", 2)};
    assert_int_not_equal(pki_region_id(&lambdas[0]), pki_region_id(&lambdas[1]));
    assert_int_equal(lambdas[0].id, pk_region_named("f(int)::<lambda(int)> (a.cpp:1)")->id);
}

static void functions_names(void **state)
{
    /* as gcc and clang write them, and what is none */
    static const char *const names[][2] = {
        {"main", "main"},
        {"int main(int, char**)", "main"},
        {"static void a::b::f(std::vector<int, std::allocator<int> >&) const", "a::b::f"},
        {"T a<T>::f(T) const [with T = std::pair<int, void (*)(int)>]", "a<T>::f"},
        {"const std::map<int, int> &f(int) [T = int]", "f"},
        {"a::a(int)", "a::a"},
        {"virtual a::~a()", "a::~a"},
        {"bool a::operator<(const a&) const", "a::operator<"},
        {"a& a::operator()(int) &&", "a::operator()"},
        {"a::operator bool() const", "a::operator bool"},
        {"{anonymous}::f(int)", "{anonymous}::f"},
        {"void (anonymous namespace)::a::f()", "(anonymous namespace)::a::f"},
        {"f(int)::<lambda(int)>", "f(int)::<lambda(int)>"},
        {"auto f(int)::(anonymous class)::operator()(int) const",
         "f(int)::(anonymous class)::operator()"},
        {"void f(void (*)(int))", "f"},
        {"(", "("},
        {")(", ")("},
        {"a) b()", "b"},
        {"", "(unnamed)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pk_region region = function_at(names[i][0], "table.cpp", 100 + (uint32_t)i);
        const char *name = pki_name_at(pki_region_id(&region))->name;
        if (strncmp(name, names[i][1], strlen(names[i][1])) != 0 ||
            (name[strlen(names[i][1])] && name[strlen(names[i][1])] != ' '))
            fail_msg("%s: %s and not %s", names[i][0], name, names[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_name_same_pointer),
        cmocka_unit_test(kinds_are_different_names),
        cmocka_unit_test(places_in_the_source_share_a_name),
        cmocka_unit_test(no_name),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(variants),
        cmocka_unit_test(each_of_many_variants_stays_itself),
        cmocka_unit_test(variants_of_long_names),
        cmocka_unit_test(counters_are_not_regions),
        cmocka_unit_test(ids_that_were_never_given),
        cmocka_unit_test(errno_is_the_programs),
        cmocka_unit_test(many_threads_get_the_same),
        cmocka_unit_test(races_have_one_winner),
        cmocka_unit_test(functions_are_places),
        cmocka_unit_test(functions_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

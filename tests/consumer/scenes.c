#include "core/thread.h" /* its parameters have names that scenes.h gives to types */
#include "scenes.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tally.h"

#define TINY 5000 /* in each half of the run */

void place_open(place *p)
{
    tally_open(p->shown);
    pk_region_begin(&p->region);
}

void place_shut(place *p)
{
    pk_region_end(&p->region);
    tally_shut();
}

/* ---- all kinds, one inside the other ---- */

static place kinds[] = {
    {PK_REGION_OF(PK_OTHER, "other"), "other"}, {PK_REGION_OF(PK_COMPUTE, "compute"), "compute"},
    {PK_REGION_OF(PK_DATA, "data"), "data"},    {PK_REGION_OF(PK_COMM, "comm"), "comm"},
    {PK_REGION_OF(PK_IO, "io"), "io"},          {PK_REGION_OF(PK_WAIT, "wait"), "wait"}};
#define KINDS (sizeof kinds / sizeof *kinds)

static void all_kinds(void)
{
    for (size_t i = 0; i < KINDS; i++)
        place_open(&kinds[i]);
    for (size_t i = KINDS; i-- > 0;)
        place_shut(&kinds[i]);
}

/* ---- names ---- */

#define REPLACED "\\ufffd"

static place names[] = {
    {PK_REGION("quote \" backslash \\ slash /"), "quote \\\" backslash \\\\ slash /"},
    {PK_REGION("tab \t line \n bell \a \x01 \x1f del \x7f"),
     "tab \\t line \\n bell \\u0007 \\u0001 \\u001f del \\u007f"},
    {PK_REGION("invalid \xff \xc0\xaf \xed\xa0\x80 cut \xe2\x82"),
     "invalid " REPLACED " " REPLACED REPLACED " " REPLACED REPLACED REPLACED
     " cut " REPLACED REPLACED},
    {PK_REGION("rocket \xf0\x9f\x9a\x80 \xe6\x97\xa5\xe6\x9c\xac"),
     "rocket \\ud83d\\ude80 \\u65e5\\u672c"},
    {PK_REGION(""), "(unnamed)"},
    {PK_REGION("\"}, {\"ph\":\"X\"}]} </script> <!--"),
     "\\\"}, {\\\"ph\\\":\\\"X\\\"}]} </script> <!--"},
    {PK_REGION("%s %n $& {{}}"), "%s %n $& {{}}"},
    {PK_REGION("Profile"), "Profile"},
    {PK_REGION("ProfileChunk"), "ProfileChunk"},
    {PK_REGION("CpuProfile"), "CpuProfile"},
    {PK_REGION("samples"), "samples"},
    {PK_REGION("constructor"), "constructor"},
    {PK_REGION("__proto__"), "__proto__"},
    {PK_REGION("0"), "0"},
    {PK_REGION("null"), "null"},
};

/* 255 bytes are kept, and of a letter that takes the 255th and the 256th that is no letter. */
static void longest_name(void)
{
    static char name[301], shown[301];
    memset(name, 'x', 254);
    memcpy(shown, name, 254);
    memcpy(name + 254, "\xc3\xa9 and more", 11);
    memcpy(shown + 254, REPLACED, sizeof REPLACED);
    pk_region *region = pk_region_named(name);
    pk_region_begin(region);
    pk_region_end(region);
    tally_many(shown, 1);
}

/* One after the other, and one inside the other. */
static void odd_names(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        place_open(&names[i]);
        place_shut(&names[i]);
        pk_region_mark(&names[i].region);
        tally_mark(names[i].shown);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        place_open(&names[i]);
    for (size_t i = sizeof names / sizeof *names; i-- > 0;)
        place_shut(&names[i]);
}

/* ---- variants, work, counters ---- */

static PLACE(attention, PK_COMPUTE, "attention", "attention");
static PLACE(copy, PK_IO, "copy \"all\"", "copy \\\"all\\\"");

static void variant(const char *key, int64_t value, const char *shown, const char *shown_key)
{
    pk_region *region = pk_region_variant(&attention.region, key, value);
    pk_region_begin(region);
    pk_region_end(region);
    tally_many(shown, 1);
    tally_argument(shown, shown_key, (double)value);
}

static void variants(void)
{
    variant("seq", 512, "attention[seq=512]", "seq");
    variant("seq", -7, "attention[seq=-7]", "seq");
    variant("seq", INT64_MAX, "attention[seq=9223372036854775807]", "seq");
    variant("\"\xff", 0, "attention[\\\"" REPLACED "=0]", "\\\"" REPLACED);
}

static void worked(uint64_t bytes, uint64_t flops)
{
    place_open(&copy);
    pk_region_add(&copy.region, bytes, flops);
    pk_region_add(&copy.region, bytes, 0);
    place_shut(&copy);
    tally_argument(copy.shown, "bytes", 2 * (double)bytes);
    tally_argument(copy.shown, "flops", (double)flops);
}

static void work(void)
{
    worked(4096, 1000000);
    worked(1, 0);
    worked(0, 7);
    worked(0, 12345678901234567890u); /* above 2^63 */
}

static pk_counter memory = PK_COUNTER("memory \"used\"", "bytes");
static pk_counter bare = PK_COUNTER("bare \xff", NULL);

static void value(pk_counter *counter, double number, const char *shown)
{
    pk_counter_set(counter, number);
    if (isfinite(number))
        tally_value(shown, number);
}

static void counters(void)
{
    static const double numbers[] = {0, -1.5, 0.1, 1e300, -1e-300, 123456789012345678.0, NAN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        value(&memory, numbers[i], "memory \\\"used\\\" bytes");
    value(&bare, 1, "bare " REPLACED " value");
}

/* What learning rates and late losses are like: Perfetto's reader overflows at 20 decimals, which
 * 17 digits reach just below 1e-3. */
static const double small[] = {1.0 / 30,   1.0 / 300,  1.0 / 3000, 1.0 / 30000, 1.0 / 3e20,
                               1.0 / 2051, 0.0009 / 7, 1.0 / 1001, 0.00025,     0.001};
#define SMALL (sizeof small / sizeof *small)

static void small_values(void)
{
    static pk_counter rate = PK_COUNTER("learning rate", "");
    for (size_t i = 0; i < SMALL; i++) {
        value(&rate, small[i], "learning rate value");
        value(&rate, -small[i], "learning rate value");
    }
}

/* A number as ranges of NVTX have it, in a region of its own, since arguments are summed. */
static void small_argument(const char *key, size_t i, double number)
{
    static PLACE(schedule, PK_OTHER, "schedule", "schedule");
    static char shown[2][SMALL][32];
    char *name = shown[number < 0][i];
    pk_region *region = pk_region_variant(&schedule.region, key, (int64_t)i);
    uint64_t bits;
    snprintf(name, sizeof shown[0][0], "schedule[%s=%zu]", key, i);
    memcpy(&bits, &number, sizeof bits);
    pk_region_begin(region);
    pki_region_payload(region, PKI_PAYLOAD_REAL, bits);
    pk_region_end(region);
    tally_many(name, 1);
    tally_argument(name, "payload", number);
}

static void small_arguments(void)
{
    for (size_t i = 0; i < SMALL; i++) {
        small_argument("up", i, small[i]);
        small_argument("down", i, -small[i]);
    }
}

/* ---- depth ---- */

#define DEEPEST 64

/* The 65th is too deep: dropped. */
static void deep(void)
{
    static PLACE(level, PK_OTHER, "level", "level");
    static PLACE(too_deep, PK_OTHER, "too deep", "too deep");
    for (int i = 0; i < DEEPEST; i++)
        place_open(&level);
    pk_region_begin(&too_deep.region);
    pk_region_end(&too_deep.region);
    for (int i = 0; i < DEEPEST; i++)
        place_shut(&level);
}

/* Two that are left open inside another one, by an exception say, end with it. */
static void abandoned(void)
{
    static PLACE(around, PK_OTHER, "around", "around");
    static PLACE(thrown, PK_OTHER, "thrown", "thrown");
    static PLACE(deeper, PK_OTHER, "thrown deeper", "thrown deeper");
    place_open(&around);
    place_open(&thrown);
    place_open(&deeper);
    tally_leave_open();
    tally_leave_open();
    place_shut(&around);
}

/* ---- many ---- */

static void tiny(void)
{
    static PLACE(dot, PK_COMPUTE, "dot", "dot");
    for (int i = 0; i < TINY; i++) {
        pk_region_begin(&dot.region);
        pk_region_end(&dot.region);
    }
    tally_many(dot.shown, TINY);
}

/* As short as they get, one inside the other. */
static void nested_tiny(void)
{
    static PLACE(a, PK_COMPUTE, "outer", "outer");
    static PLACE(b, PK_COMPUTE, "middle", "middle");
    static PLACE(c, PK_COMPUTE, "inner", "inner");
    for (int i = 0; i < TINY / 10; i++) {
        pk_region_begin(&a.region);
        pk_region_begin(&b.region);
        pk_region_begin(&c.region);
        pk_region_end(&c.region);
        pk_region_end(&b.region);
        pk_region_end(&a.region);
        tally_open(a.shown);
        tally_open(b.shown);
        tally_many(c.shown, 1);
        tally_shut();
        tally_shut();
    }
}

/* ---- threads ---- */

void scenes_of_thread(int number)
{
    static const char *const tracks[SCENE_THREADS] = {"names \"\xff\"", "deep", "tiny"};
    static const char *const shown[SCENE_THREADS] = {"names \\\"" REPLACED "\\\"", "deep", "tiny"};
    pthread_setname_np(pthread_self(), tracks[number]);
    tally_track(shown[number]);
    all_kinds();
    if (number == 0) {
        odd_names();
        longest_name();
        variants();
        work();
        counters();
        small_values();
        small_arguments();
    } else if (number == 1) {
        deep();
        abandoned();
    } else {
        tiny();
        nested_tiny();
    }
    all_kinds();
}

static PLACE(serving, PK_WAIT, "serving", "serving");
static PLACE(request, PK_WAIT, "request", "request");

void scenes_of_waiter(void)
{
    pthread_setname_np(pthread_self(), "waiter");
    pk_region_begin(&serving.region);
    pk_region_begin(&request.region);
}

/* Called by another thread, which then counts as the waiter. */
void scenes_left_open(void)
{
    tally_track("waiter");
    tally_open(serving.shown);
    tally_open(request.shown);
    tally_leave_open();
    tally_leave_open();
}

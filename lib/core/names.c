#include "core/names.h"

#include <pk/private.h>
#include <pk/region.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "base/text.h"
#include "core/thread.h"

/* ---- what PK_FUNCTION's regions are called ---- */

/* Is it PK_FUNCTION's? Then its name is its function's, or in C++ its function's signature. */
static inline bool pki_is_function(const pk_region *region)
{
    return (region->spare[0] & PK_REGION_FUNCTION_) != 0;
}

/* ---- signatures: RETURNED [NAMESPACE::CLASS::]NAME(PARAMETERS) [const ...] [[with T = ...]] ----
 */

static size_t without_template_arguments(const char *s, size_t n)
{
    const char *with = memmem(s, n, " [", 2);
    return with && s[n - 1] == ']' ? (size_t)(with - s) : n;
}

/* The parenthesis that opens what ends at s[close]; `close` if none does. */
static size_t opening(const char *s, size_t close)
{
    size_t depth = 0;
    for (size_t i = close + 1; i-- > 0;) {
        depth += s[i] == ')';
        if (s[i] == '(' && --depth == 0)
            return i;
    }
    return close;
}

/* Where the parameters begin: the last parentheses, with nothing but qualifiers behind them. A
 * lambda's are followed by "::" and a name. */
static size_t without_parameters(const char *s, size_t n)
{
    const char *close = memrchr(s, ')', n);
    if (!close || (size_t)(close - s) + 1 + strcspn(close + 1, ":<>") < n)
        return n;
    size_t open = opening(s, (size_t)(close - s));
    return open ? open : n;
}

/* The operator's own name may hold what encloses elsewhere: operator<, operator(). */
static size_t before_operator(const char *s, size_t n)
{
    static const char word[] = "operator";
    for (size_t i = n; i-- > 0;)
        if (n - i >= sizeof word - 1 && memcmp(s + i, word, sizeof word - 1) == 0 &&
            (i == 0 || s[i - 1] == ':' || s[i - 1] == ' '))
            return i;
    return n;
}

/* Behind the last space that nothing encloses. */
static size_t name_start(const char *s, size_t n)
{
    int depth = 0;
    for (size_t i = before_operator(s, n); i-- > 0;) {
        depth += s[i] == ')' || s[i] == '>';
        depth -= s[i] == '(' || s[i] == '<';
        if (depth == 0 && (s[i] == ' ' || s[i] == '*' || s[i] == '&'))
            return i + 1;
    }
    return 0;
}

/* "a::b::f" of "int a::b::f(char) const [with T = int]", as compilers write signatures; what is
 * none stays as it is. Writes at most size - 1 bytes and a NUL. */
static void pki_function_name(const char *signature, char *out, size_t size)
{
    size_t n = strlen(signature);
    if (n && strchr(signature, '(')) {
        n = without_template_arguments(signature, n);
        n = without_parameters(signature, n);
        size_t start = name_start(signature, n);
        signature += start;
        n -= start;
    }
    snprintf(out, size, "%.*s", (int)PKI_MIN(n, size - 1), signature);
}

/* Is it called by its name alone? A lambda is not: those of one function have the same name. */
static bool pki_function_has_name(const char *name)
{
    return !strstr(name, "lambda") && !strstr(name, "(anonymous class)");
}

/* Where it is, as a number that is not 0: the same for the same file and line. */
/* ---- places ---- */

static uint64_t pki_function_place(const pk_region *region)
{
    const char *file = region->file ? region->file : "";
    return (uint64_t)pki_hash(file, strlen(file), 0) << 32 | region->line | 1u << 31;
}

/* Appends " (file.c:12)" to the name, which is cut if there is no room. */
static void pki_function_append_place(const pk_region *region, char *name, size_t size)
{
    char place[80];
    int n = snprintf(place, sizeof place, " (%.60s:%u)",
                     pki_base_name(region->file ? region->file : "?"), region->line);
    size_t at = PKI_MIN(strlen(name), size - 1 - (size_t)n);
    memcpy(name + at, place, (size_t)n + 1);
}

/* ---- names of regions and counters, interned for the process's life ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* among those that add */

/* Reserved ones need no memory, so there always is an id to give. */
#define TOO_MANY "(too many names)"
static pki_name too_many = {
    .id = PKI_NAME_TOO_MANY,
    .length = sizeof TOO_MANY - 1,
    .name = TOO_MANY,
    .key = "",
    .handle.region = {.name = TOO_MANY, .kind = PK_OTHER, .id = PKI_NAME_TOO_MANY, .file = ""}};
static pki_name step = {
    .id = PKI_NAME_STEP, .kind = PKI_KIND_INTERNAL, .length = 4, .name = "step", .key = ""};

static pki_name *const reserved[PKI_NAME_FIRST] = {
    [PKI_NAME_TOO_MANY] = &too_many, [PKI_NAME_STEP] = &step};

/* The others. With one of them in it from the start, all of it would be in each program's file. */
static pki_name *by_id[PKI_NAMES_MAX];
static uint32_t next_id = PKI_NAME_FIRST;
static void (*on_new)(uint32_t id);

/* Open addressing over ids; 0 is empty. Twice the number of ids, so a probe always ends. Pages that
 * no name hashes to stay untouched. */
#define BUCKETS (2 * PKI_NAMES_MAX)
static uint32_t buckets[BUCKETS];

#define CHUNK_BYTES 65536u /* of names, at a time */

typedef struct wanted {
    uint32_t kind;
    const char *name, *key;
    size_t length, key_length;
    int64_t value;
    uint32_t base;
} wanted;

static pki_name *entry_of(uint32_t id)
{
    /* pairs with the release in add */
    return id < PKI_NAME_FIRST ? reserved[id] : pki_load_acquire(&by_id[id]);
}

static size_t bounded_length(const char *s)
{
    return s ? strnlen(s, PKI_NAME_BYTES) : 0;
}

static uint32_t hash_of(const wanted *w)
{
    return pki_hash(w->name, w->length, w->kind);
}

static bool same(const pki_name *n, const wanted *w, uint32_t hash)
{
    return n->hash == hash && n->kind == w->kind && n->length == w->length &&
           memcmp(n->name, w->name, w->length) == 0;
}

/* The entry, or NULL and the empty bucket where it belongs. */
static pki_name *find(const wanted *w, uint32_t hash, uint32_t *empty)
{
    for (uint32_t i = hash % BUCKETS;; i = (i + 1) % BUCKETS) {
        uint32_t id = pki_load_acquire(&buckets[i]); /* pairs with the release in add */
        if (id == 0) {
            *empty = i;
            return NULL;
        }
        if (same(by_id[id], w, hash))
            return by_id[id];
    }
}

/* Memory of its own: a handler may have interrupted malloc. Never given back. Under the lock. */
static void *allocate(size_t bytes)
{
    static char *spare;
    static size_t left;
    bytes = (bytes + 15) & ~(size_t)15;
    if (left < bytes) {
        char *more = pki_mem_private(CHUNK_BYTES);
        if (!more)
            return NULL;
        spare = more;
        left = CHUNK_BYTES;
    }
    char *at = spare;
    spare += bytes;
    left -= bytes;
    return at;
}

static void make_handle(pki_name *n)
{
    if (n->kind == PKI_KIND_COUNTER)
        n->handle.counter = (pk_counter){.name = n->name, .unit = n->key, .id = n->id};
    else
        n->handle.region = (pk_region){.name = n->name, .kind = n->kind, .id = n->id, .file = ""};
}

static pki_name *make(const wanted *w, uint32_t hash, uint32_t id)
{
    pki_name *n = allocate(sizeof *n + w->length + 1 + w->key_length + 1);
    if (!n)
        return NULL;
    char *text = (char *)(n + 1);
    memcpy(text, w->name, w->length);
    if (w->key_length)
        memcpy(text + w->length + 1, w->key, w->key_length);
    *n = (pki_name){.id = id,
                    .kind = w->kind,
                    .hash = hash,
                    .length = (uint16_t)w->length,
                    .key_length = (uint16_t)w->key_length,
                    .base = w->base,
                    .value = w->value,
                    .name = text,
                    .key = text + w->length + 1};
    make_handle(n);
    return n;
}

static pki_name *add(const wanted *w, uint32_t hash)
{
    uint32_t empty;
    pki_name *n = find(w, hash, &empty); /* another thread may have been first */
    if (n)
        return n;
    uint32_t id = next_id;
    n = id < PKI_NAMES_MAX ? make(w, hash, id) : NULL;
    if (!n)
        return NULL;
    pki_store_release(&by_id[id], n); /* pairs with the acquire in entry_of */
    pki_store_release(&next_id, id + 1);
    pki_store_release(&buckets[empty], id);
    return n;
}

static void announce(uint32_t id)
{
    void (*called)(uint32_t) = pki_load(&on_new);
    if (called)
        called(id);
}

static pki_name *intern(const wanted *w)
{
    uint32_t empty, hash = hash_of(w);
    pki_name *n = find(w, hash, &empty);
    if (n)
        return n;
    int saved = errno;
    bool outermost = pki_enter(); /* a handler that interrupts us must not want the lock, too */
    pthread_mutex_lock(&lock);
    n = add(w, hash);
    pthread_mutex_unlock(&lock);
    if (n)
        announce(n->id);
    if (outermost)
        pki_leave();
    errno = saved;
    return n ? n : &too_many;
}

/* For callers that may be handlers, amid the above: these get what is there. */
static pki_name *intern_or_share(const wanted *w)
{
    uint32_t empty;
    pki_name *n = pki_is_amid() ? find(w, hash_of(w), &empty) : intern(w);
    return n ? n : &too_many;
}

static wanted wanted_region(uint32_t kind, const char *name)
{
    if (!name || !*name)
        name = "(unnamed)";
    return (wanted){
        .kind = kind > PK_WAIT ? PK_OTHER : kind, .name = name, .length = bounded_length(name)};
}

static wanted wanted_counter(const char *name, const char *unit)
{
    if (!name || !*name)
        name = "(unnamed)";
    return (wanted){.kind = PKI_KIND_COUNTER,
                    .name = name,
                    .length = bounded_length(name),
                    .key = unit,
                    .key_length = bounded_length(unit)};
}

/* ---- PK_FUNCTION: who is called what ---- */

/* The first function of a name has it; one at another place has its place in its name. A name that
 * no function has yet, of a region that was named so, is theirs together. */
static bool is_its_name(pki_name *n, const pk_region *region)
{
    uint64_t nobody = 0, place = pki_function_place(region);
    return n->id == PKI_NAME_TOO_MANY ||
           __atomic_compare_exchange_n(&n->place, &nobody, place, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED) ||
           nobody == place;
}

typedef char function_name[PKI_NAME_BYTES + 1];

static void name_function(const pk_region *region, function_name name)
{
    pki_function_name(region->name ? region->name : "", name, PKI_NAME_BYTES + 1);
    if (!pki_function_has_name(name))
        pki_function_append_place(region, name, PKI_NAME_BYTES + 1);
}

static pki_name *intern_function(const pk_region *region)
{
    function_name name;
    name_function(region, name);
    wanted w = wanted_region(region->kind, name);
    pki_name *n = intern(&w);
    if (is_its_name(n, region))
        return n;
    pki_function_append_place(region, name, sizeof name);
    w = wanted_region(region->kind, name);
    return intern(&w);
}

static pki_name *intern_region(const pk_region *region)
{
    if (pki_is_function(region))
        return intern_function(region);
    wanted w = wanted_region(region->kind, region->name);
    return intern(&w);
}

static pki_name *find_region(uint32_t kind, const char *name)
{
    uint32_t empty;
    wanted w = wanted_region(kind, name);
    return find(&w, hash_of(&w), &empty);
}

static pki_name *find_function(const pk_region *region)
{
    function_name name;
    name_function(region, name);
    pki_name *n = find_region(region->kind, name);
    uint64_t place = n ? pki_load(&n->place) : 0;
    if (!place || place == pki_function_place(region))
        return n;
    pki_function_append_place(region, name, sizeof name);
    return find_region(region->kind, name);
}

uint32_t pki_region_id(pk_region *region)
{
    uint32_t id = pki_load(&region->id);
    if (id == 0)
        id = pki_load(&region->reserved); /* it is thinned (core/thin.h) */
    if (id == 0) {
        id = intern_region(region)->id;
        pki_store(&region->id, id);
    }
    return id;
}

uint32_t pki_region_id_of(const pk_region *region)
{
    const pki_name *n =
        pki_is_function(region) ? find_function(region) : find_region(region->kind, region->name);
    return n ? n->id : 0;
}

/* A table full of regions has no counter to share: such a counter keeps id 0 and is dropped. */
uint32_t pki_counter_id(pk_counter *counter)
{
    uint32_t id = pki_load(&counter->id);
    if (id == 0) {
        wanted w = wanted_counter(counter->name, counter->unit);
        const pki_name *n = intern(&w);
        id = n->kind == PKI_KIND_COUNTER ? n->id : 0;
        pki_store(&counter->id, id);
    }
    return id;
}

pk_region *pk_region_named_of(pk_kind kind, const char *name)
{
    wanted w = wanted_region((uint32_t)kind, name);
    return &intern_or_share(&w)->handle.region;
}

pk_region *pk_region_named(const char *name)
{
    return pk_region_named_of(PK_OTHER, name);
}

/* NULL is as pk_region_named(NULL). */
static const pki_name *name_of(pk_region *region)
{
    uint32_t id = region ? pki_load(&region->id) : 0;
    if (!id && region && !pki_is_amid())
        id = pki_region_id(region);
    const pki_name *n = entry_of(id);
    if (n)
        return n;
    wanted w = wanted_region(region ? region->kind : PK_OTHER, region ? region->name : NULL);
    return intern_or_share(&w);
}

/* The last variant at each place, so that one that is known is found without making its name. */
#define VARIANT_PLACES 1024u
static pki_name *variants[VARIANT_PLACES];

static pki_name **variant_place(uint32_t base, const char *key, int64_t value)
{
    uint32_t hash = pki_hash(key, bounded_length(key), base);
    uint64_t mixed = ((uint64_t)value ^ hash) * 0x9E3779B97F4A7C15u;
    return &variants[mixed >> 54];
}

static bool is_variant(const pki_name *n, uint32_t base, const char *key, int64_t value)
{
    return n && n->base == base && n->value == value && strcmp(n->key, key) == 0;
}

static pki_name *make_variant(const pki_name *base, const char *key, int64_t value)
{
    char text[PKI_NAME_BYTES + 1];
    /* The end is what tells variants apart, so a long name is cut, not the key and its value. */
    char tail[128];
    int tail_length = snprintf(tail, sizeof tail, "[%.80s=%lld]", key, (long long)value);
    int room = (int)sizeof text - 1 - tail_length;
    snprintf(text, sizeof text, "%.*s%s", PKI_MIN(room, (int)base->length), base->name, tail);
    wanted w = {.kind = base->kind,
                .name = text,
                .length = strlen(text),
                .key = key,
                .key_length = bounded_length(key),
                .value = value,
                .base = base->id};
    return intern_or_share(&w);
}

pk_region *pk_region_variant(pk_region *region, const char *key, int64_t value)
{
    if (!key || !*key)
        key = "value";
    const pki_name *base = name_of(region);
    pki_name **place = variant_place(base->id, key, value);
    pki_name *n = pki_load_acquire(place); /* pairs with the release below */
    if (is_variant(n, base->id, key, value))
        return &n->handle.region;
    n = make_variant(base, key, value);
    if (is_variant(n, base->id, key, value))
        pki_store_release(place, n); /* pairs with the acquire above */
    return &n->handle.region;
}

pk_region *pki_region_tagged(pk_kind kind, const char *name, const char *key, int64_t value)
{
    wanted w = wanted_region((uint32_t)kind, name);
    w.key = key;
    w.key_length = bounded_length(key);
    w.value = value;
    return &intern(&w)->handle.region;
}

uint32_t pki_name_internal(const char *name, const char *key, int64_t value)
{
    wanted w = {.kind = PKI_KIND_INTERNAL,
                .name = name,
                .length = bounded_length(name),
                .key = key,
                .key_length = bounded_length(key),
                .value = value};
    return intern(&w)->id;
}

pk_counter *pk_counter_named(const char *name, const char *unit)
{
    static pk_counter nowhere = PK_COUNTER("(too many names)", "");
    wanted w = wanted_counter(name, unit);
    pki_name *n = intern_or_share(&w);
    return n->kind == PKI_KIND_COUNTER ? &n->handle.counter : &nowhere;
}

const pki_name *pki_name_at(uint32_t id)
{
    return id < pki_name_count() ? entry_of(id) : NULL;
}

const char *pk_region_name_(uint32_t id)
{
    const pki_name *n = id ? pki_name_at(id) : NULL;
    return n ? n->name : NULL;
}

uint64_t pki_name_limit(uint32_t id)
{
    const pki_name *n = pki_name_at(id);
    return n ? pki_load(&n->limit_ns) : 0;
}

#define LONGEST_LIMIT_S 1e9

void pk_region_set_limit(pk_region *region, double seconds)
{
    uint32_t id = pki_region_id(region);
    double s = seconds > 0 ? seconds : 0; /* also of what is no number */
    if (id != PKI_NAME_TOO_MANY)
        pki_store(&entry_of(id)->limit_ns, (uint64_t)(PKI_MIN(s, LONGEST_LIMIT_S) * 1e9));
}

uint32_t pki_name_kind(uint32_t id)
{
    const pki_name *n = pki_name_at(id);
    return n ? n->kind : PK_OTHER;
}

uint32_t pki_name_count(void)
{
    return pki_load_acquire(&next_id); /* pairs with the release in add */
}

/* Under the lock: whoever looks through the names behind this call finds all those that it is not
 * called for. */
void pki_names_on_new(void (*called)(uint32_t id))
{
    bool outermost = pki_enter();
    pthread_mutex_lock(&lock);
    pki_store(&on_new, called);
    pthread_mutex_unlock(&lock);
    if (outermost)
        pki_leave();
}

void pki_names_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

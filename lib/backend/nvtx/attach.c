/* lib/backend/nvtx/attach.c - the backend: a tool that our regions go to, how users of NVTX find
 * us, and their ranges of the process */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/nvtx/nvtx.h"
#include "backend/shim.h"
#include "base/clock.h"
#include "base/loader.h"
#include "base/memory.h"
#include "base/tuning.h"
#include "core/join.h"
#include "core/names.h"
#include "core/registry.h"
#include "measure/fold/fold.h"
#include "out/emit.h"
#include "session/activity.h"
#include "session/session.h"

/* ---- tool ---- */

#define ENTRY "InitializeInjectionNvtx2"
#define EXTENSION_ENTRY "InitializeInjectionNvtxExtension"

/* A tool may be linked into the program. */
extern NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr __attribute__((weak));
extern NvtxExtInitializeInjectionFunc_t InitializeInjectionNvtxExtension_fnptr
    __attribute__((weak));

static void *function(void *library, const char *name, void *where, size_t size)
{
    void *found = dlsym(library, name);
    memcpy(where, &found, size);
    return found;
}

static const char *wanted_tool(void)
{
    const char *path = secure_getenv(PKI_NVTX_VARIABLE);
    return path && *path ? path : NULL;
}

/* A library that NVTX_INJECTION64_PATH names and that is not perfkit, with its entry points; or one
 * that is linked into the program. Without an entry point the name is that of something else, or
 * empty if nothing is named. */
typedef struct pki_nvtx_tool {
    char name[PATH_MAX];
    NvtxInitializeInjectionNvtxFunc_t init;
    NvtxExtInitializeInjectionFunc_t init_extension;
} pki_nvtx_tool;

static bool find_linked_tool(pki_nvtx_tool *tool)
{
    if (!&InitializeInjectionNvtx2_fnptr || !InitializeInjectionNvtx2_fnptr)
        return false;
    snprintf(tool->name, sizeof tool->name, "the tool in the program");
    tool->init = InitializeInjectionNvtx2_fnptr;
    if (&InitializeInjectionNvtxExtension_fnptr)
        tool->init_extension = InitializeInjectionNvtxExtension_fnptr;
    return true;
}

/* Every perfkit, this one or another, and every shim would only hear itself. */
static bool is_perfkit(void *library)
{
    return dlsym(library, "pk_backend_status") || dlsym(library, PK_SHIM_NAME);
}

static bool pki_nvtx_find_tool(pki_nvtx_tool *tool)
{
    const char *path = wanted_tool();
    memset(tool, 0, sizeof *tool);
    if (!path)
        return find_linked_tool(tool);
    snprintf(tool->name, sizeof tool->name, "%s", path);
    void *library = pki_dl_possible() ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (!library)
        return false;
    if (is_perfkit(library))
        tool->name[0] = '\0';
    if (!tool->name[0] || !function(library, ENTRY, &tool->init, sizeof tool->init)) {
        dlclose(library);
        return false;
    }
    function(library, EXTENSION_ENTRY, &tool->init_extension, sizeof tool->init_extension);
    return true; /* never closed: its functions are called from now on */
}

/* ---- being found ---- */

static bool lies_in(const void *address, const void *base)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fbase == base;
}

static bool is_program(const char *path)
{
    char program[PATH_MAX], file[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0 || !realpath(path, file))
        return true;
    program[n] = '\0';
    return strcmp(program, file) == 0;
}

/* The library that this code lies in, if it is one and has the entry point. */
static bool own_library(char path[PATH_MAX])
{
    static const char here;
    Dl_info self;
    if (!dladdr(&here, &self) || !self.dli_fname || is_program(self.dli_fname))
        return false;
    void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *entry = library ? dlsym(library, ENTRY) : NULL;
    bool found = entry && lies_in(entry, self.dli_fbase) && realpath(self.dli_fname, path);
    if (library)
        dlclose(library); /* it stays: see lib/session/control.c */
    return found;
}

static int attach(const void *(*get_export_table)(uint32_t id))
{
    return pki_nvtx_attach(get_export_table);
}

static int attach_extension(void *module)
{
    return pki_nvtx_attach_extension(module);
}

static bool fill_shim(pk_shim_calls *calls, char *reason, size_t size)
{
    if (calls->size < offsetof(pk_shim_calls, nvtx_extension) + sizeof calls->nvtx_extension) {
        snprintf(reason, size, "%s is that of another perfkit", PKI_SHIM);
        return false;
    }
    if (calls->nvtx && calls->nvtx != attach) {
        snprintf(reason, size, "another perfkit in this process consumes NVTX already");
        return false;
    }
    calls->nvtx = attach;
    calls->nvtx_extension = attach_extension;
    return true;
}

static bool use_shim(const char *given, char path[PATH_MAX], char *reason, size_t size)
{
    Dl_info info;
    if (!pki_dl_possible()) {
        snprintf(reason, size, "%s", PKI_DL_STATIC);
        return false;
    }
    void *shim = pki_shim_open(given);
    void *calls = shim ? dlsym(shim, PK_SHIM_NAME) : NULL;
    if (!calls || !dladdr(calls, &info) || !info.dli_fname || !realpath(info.dli_fname, path)) {
        snprintf(reason, size,
                 "perfkit is linked statically, and %.100s cannot be opened: set nvtx_shim",
                 *given ? given : PKI_SHIM);
        return false;
    }
    return fill_shim(calls, reason, size); /* never closed: users of NVTX are inside */
}

static bool is_same_file(const char *a, const char *b)
{
    char full[PATH_MAX];
    return realpath(a, full) && strcmp(full, b) == 0;
}

/* From here on whoever calls NVTX for the first time finds us. False, and why in words. */
/* Somebody who has injected a tool before us is left alone. */
static bool pki_nvtx_inject(const pki_config *config, char *reason, size_t size)
{
    char path[PATH_MAX];
    const char *there = wanted_tool();
    bool found = own_library(path) || use_shim(config->nvtx_shim, path, reason, size);
    if (there && (!found || !is_same_file(there, path))) {
        snprintf(reason, size, "another tool reads NVTX ranges: %.120s", there);
        return false;
    }
    if (!found)
        return false;
    if (!there && setenv(PKI_NVTX_VARIABLE, path, 1) != 0) {
        snprintf(reason, size, PKI_NVTX_VARIABLE " cannot be set");
        return false;
    }
    pki_store(&pki_nvtx_users.welcome, true);
    return true;
}

/* ---- our regions, as ranges of the NVTX domain "perfkit" ---- */

/* A user of NVTX has function pointers that a tool fills in. These here are ours, so it is known
 * what the tool listens to, and nothing is called that it does not. Regions have a registered
 * string each, the colour of their kind, and the kind as category. What pk_region_add counted is a
 * payload of the range's end where the tool takes that, else a mark before it. */

#define FUNCTIONS 16 /* more than any module has */
#define MODULES NVTX_CB_MODULE_SIZE
#define SLOTS 63

typedef void (*any_function)(void);

static any_function functions[MODULES][FUNCTIONS];
static NvtxFunctionPointer *tables[MODULES][FUNCTIONS + 1];
static intptr_t slots[SLOTS];

/* Of the tool; NULL where it does not listen. */
static nvtxDomainRangePushEx_impl_fntype push;
static nvtxDomainRangePop_impl_fntype pop;
static nvtxDomainMarkEx_impl_fntype put_mark;
static int (*pop_payload)(nvtxDomainHandle_t, const nvtxPayloadData_t *, size_t);

static nvtxDomainHandle_t emit_domain;
static uint64_t schema;
static nvtxStringHandle_t names[PKI_NAMES_MAX]; /* by id; pages that no name needs stay untouched */
static uint8_t registered[PKI_NAMES_MAX];       /* 0, 1: being registered, 2: done */
static nvtxDomainRegisterStringA_impl_fntype register_string;
static bool attached;

static _Thread_local uint32_t open_ranges;
static _Thread_local bool inside; /* a tool may use perfkit itself */

/* ---- what a tool asks of us ---- */

static unsigned size_of(NvtxCallbackModule module)
{
    static const uint8_t sizes[MODULES] = {[NVTX_CB_MODULE_CORE] = NVTX_CBID_CORE_SIZE,
                                           [NVTX_CB_MODULE_CUDA] = NVTX_CBID_CUDA_SIZE,
                                           [NVTX_CB_MODULE_OPENCL] = NVTX_CBID_OPENCL_SIZE,
                                           [NVTX_CB_MODULE_CUDART] = NVTX_CBID_CUDART_SIZE,
                                           [NVTX_CB_MODULE_CORE2] = NVTX_CBID_CORE2_SIZE,
                                           [NVTX_CB_MODULE_SYNC] = NVTX_CBID_SYNC_SIZE};
    return (unsigned)module < MODULES ? sizes[module] : 0;
}

static int module_table(NvtxCallbackModule module, NvtxFunctionTable *table, unsigned *size)
{
    unsigned n = size_of(module);
    for (unsigned i = 1; i < n && i < FUNCTIONS; i++)
        tables[module][i] = &functions[module][i];
    if (size)
        *size = n;
    if (table)
        *table = n ? tables[module] : NULL;
    return n > 0;
}

static void ignore_version(uint32_t version)
{
    (void)version;
}

static const void *export_table(uint32_t id)
{
    static const NvtxExportTableCallbacks callbacks = {sizeof callbacks, module_table};
    static const NvtxExportTableVersionInfo version = {sizeof version, NVTX_VERSION, 0,
                                                       ignore_version};
    return id == NVTX_ETID_CALLBACKS     ? (const void *)&callbacks
           : id == NVTX_ETID_VERSIONINFO ? (const void *)&version
                                         : NULL;
}

static void offer_payloads(const pki_nvtx_tool *tool)
{
    nvtxExtModuleSegment_t segment = {0, SLOTS, slots};
    nvtxExtModuleInfo_t module = {NVTX_VERSION,
                                  sizeof module,
                                  NVTX_EXT_PAYLOAD_MODULEID,
                                  NVTX_EXT_PAYLOAD_COMPATID,
                                  1,
                                  &segment,
                                  NULL,
                                  pki_nvtx_types};
    if (!tool->init_extension || tool->init_extension(&module) == 0)
        memset(slots, 0, sizeof slots);
}

/* ---- what we say once ---- */

#define TOOL(module, id, type) ((type)functions[module][id])

static void fill_functions(void)
{
    push = TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx,
                nvtxDomainRangePushEx_impl_fntype);
    pop =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, nvtxDomainRangePop_impl_fntype);
    put_mark =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, nvtxDomainMarkEx_impl_fntype);
    register_string = TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA,
                           nvtxDomainRegisterStringA_impl_fntype);
    memcpy(&pop_payload, &slots[NVTX3EXT_CBID_nvtxRangePopPayload], sizeof pop_payload);
}

static void introduce_kinds(void)
{
    static const char *const kinds[] = {"other", "compute", "data", "comm", "io", "wait"};
    nvtxDomainNameCategoryA_impl_fntype name =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainNameCategoryA,
             nvtxDomainNameCategoryA_impl_fntype);
    for (uint32_t kind = PK_COMPUTE; name && kind <= PK_WAIT; kind++)
        name(emit_domain, kind, kinds[kind]);
}

static void introduce_schema(void)
{
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "bytes"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "flops", .offset = sizeof(uint64_t)}};
    static const nvtxPayloadSchemaAttr_t attr = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
        .name = "perfkit work",
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries = entries,
        .numEntries = PKI_COUNT_OF(entries),
        .payloadStaticSize = 2 * sizeof(uint64_t)};
    uint64_t (*add)(nvtxDomainHandle_t, const nvtxPayloadSchemaAttr_t *);
    memcpy(&add, &slots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister], sizeof add);
    schema = add ? add(emit_domain, &attr) : 0;
}

static void introduce(void)
{
    nvtxDomainCreateA_impl_fntype create =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, nvtxDomainCreateA_impl_fntype);
    emit_domain = create ? create(PKI_NVTX_OUR_DOMAIN) : NULL;
    introduce_kinds();
    introduce_schema();
}

/* ---- regions ---- */

static nvtxStringHandle_t handle_of(const pki_name *name)
{
    uint8_t none = 0;
    if (PKI_LIKELY(pki_load_acquire(&registered[name->id]) == 2))
        return names[name->id];
    if (!register_string || !__atomic_compare_exchange_n(&registered[name->id], &none, 1, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return NULL; /* another thread is about to */
    names[name->id] = register_string(emit_domain, name->name);
    pki_store_release(&registered[name->id], (uint8_t)2); /* pairs with the acquire above */
    return names[name->id];
}

static nvtxEventAttributes_t attributes_of(uint32_t id)
{
    static const uint32_t colours[] = {
        [PK_OTHER] = 0xFF9E9E9E, [PK_COMPUTE] = 0xFF43A047, [PK_DATA] = 0xFF1E88E5,
        [PK_COMM] = 0xFFFB8C00,  [PK_IO] = 0xFF8E24AA,      [PK_WAIT] = 0xFFE53935};
    const pki_name *name = pki_name_at(id);
    nvtxEventAttributes_t attr = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    uint32_t kind = name->kind <= PK_WAIT ? name->kind : PK_OTHER;
    attr.category = kind;
    attr.colorType = NVTX_COLOR_ARGB;
    attr.color = colours[kind];
    attr.message.registered = handle_of(name);
    attr.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    if (!attr.message.registered) {
        attr.messageType = NVTX_MESSAGE_TYPE_ASCII;
        attr.message.ascii = name->name;
    }
    return attr;
}

/* Regions that were open at pk_stop have had no end. */
static void close_left_open(unsigned depth)
{
    for (; depth == 0 && open_ranges > 0; open_ranges--)
        pop(emit_domain);
}

static void begin(uint32_t id, unsigned depth)
{
    if (inside)
        return;
    int saved = errno;
    inside = true;
    close_left_open(depth);
    nvtxEventAttributes_t attr = attributes_of(id);
    push(emit_domain, &attr);
    open_ranges++;
    inside = false;
    errno = saved;
}

/* True if that was the range's end, too. */
static bool end_with_payload(const pki_work *work)
{
    const uint64_t counts[2] = {work->bytes, work->flops};
    const nvtxPayloadData_t data = {schema, sizeof counts, counts};
    if (!pop_payload || !schema)
        return false;
    pop_payload(emit_domain, &data, 1);
    return true;
}

static void mark_bytes(uint32_t id, const pki_work *work)
{
    nvtxEventAttributes_t attr = attributes_of(id);
    attr.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attr.payload.ullValue = work->bytes;
    if (put_mark)
        put_mark(emit_domain, &attr);
}

static void end(uint32_t id, const pki_work *work)
{
    if (inside || open_ranges == 0)
        return;
    int saved = errno;
    bool worked = work->bytes || work->flops;
    inside = true;
    bool ended = worked && end_with_payload(work);
    if (!ended && work->bytes)
        mark_bytes(id, work);
    if (!ended)
        pop(emit_domain);
    open_ranges--;
    inside = false;
    errno = saved;
}

static void mark(uint32_t id)
{
    if (inside || !put_mark)
        return;
    int saved = errno;
    inside = true;
    nvtxEventAttributes_t attr = attributes_of(id);
    put_mark(emit_domain, &attr);
    inside = false;
    errno = saved;
}

/* ---- the tool found ---- */

static pki_mirror mirror;

static bool listen_with(const pki_nvtx_tool *tool, char *reason, size_t size)
{
    if (tool->init(export_table) == 0) {
        memset(functions, 0, sizeof functions);
        snprintf(reason, size, "%.120s does not want to hear of ranges", tool->name);
        return false;
    }
    offer_payloads(tool);
    fill_functions();
    if (!push || !pop) {
        snprintf(reason, size, "%.120s listens, but to no ranges of threads", tool->name);
        return false;
    }
    introduce();
    return true;
}

/* Once per process: a tool that has attached stays so. */
static bool pki_nvtx_emit_start(char *reason, size_t size)
{
    static pki_nvtx_tool tool;
    static char refused[192];
    *reason = '\0';
    if (!attached && !tool.init && pki_nvtx_find_tool(&tool))
        attached = listen_with(&tool, refused, sizeof refused);
    mirror = attached ? (pki_mirror){begin, end, mark} : (pki_mirror){NULL, NULL, NULL};
    if (attached)
        snprintf(reason, size, "emitting regions to %.120s", tool.name);
    else if (tool.init)
        snprintf(reason, size, "%s", refused);
    else if (*tool.name)
        snprintf(reason, size, "%.120s is no tool that could be opened", tool.name);
    return attached;
}

/* ---- range ---- */

/* Ranges with an id, which may begin on one thread and end on another,
 * and overlap as they like.
 *
 * So they are no regions of a thread: they stand on tracks of their own, as many as are needed to
 * keep those that overlap apart, and count in the distribution of their name, but in no thread's
 * self times. An open range is a cell; its id is the cell's number and how often that has been
 * used, so an id that is ended twice, or never was one, finds nothing. Taking and giving back cells
 * is lock-free; memory for more is taken under a lock. */

#define CELLS 1024u /* in a block */
#define BLOCKS 64u
#define NOWHERE UINT32_MAX
#define LANES 64u
#define LANE_TID (1u << 29) /* no thread's: Linux ends at 2^22 */

enum { FREE, OPEN, ENDED };

typedef struct cell {
    uint64_t state; /* how often used << 2 | one of the above */
    uint32_t next;  /* free, or ended and to be handed over */
    uint32_t session;
    uint32_t region, begun_by, ended_by;
    uint32_t monotonic;
    uint64_t start, end;
    pki_work work;
} cell;

static cell *blocks[BLOCKS];
static uint32_t block_count;
static pki_free_list free_cells; /* by cell + 1 */
static uint32_t ended_head = NOWHERE;
static uint64_t lane_end[LANES];

static cell *cell_at(uint32_t i)
{
    return &pki_load(&blocks[i / CELLS])[i % CELLS];
}

/* ---- cells ---- */

static uint32_t *link_of(void *none, uint32_t number)
{
    (void)none;
    return &cell_at(number - 1)->next;
}

static void release(uint32_t i)
{
    pki_free_list_push(&free_cells, link_of, NULL, i + 1);
}

/* NOWHERE: none is free. */
static uint32_t pop_free(void)
{
    return pki_free_list_pop(&free_cells, link_of, NULL) - 1;
}

static PKI_COLD bool grow(void)
{
    int saved = errno;
    pthread_mutex_lock(&pki_nvtx_lock);
    bool more = (uint32_t)pki_load(&free_cells) != 0; /* somebody else has */
    cell *cells = !more && block_count < BLOCKS ? calloc(CELLS, sizeof *cells) : NULL;
    if (cells) {
        uint32_t first = block_count * CELLS;
        pki_store(&blocks[block_count], cells);
        pki_store_release(&block_count, block_count + 1); /* pairs with the acquire in range_end */
        for (uint32_t i = CELLS; i-- > 0;)
            release(first + i);
    }
    pthread_mutex_unlock(&pki_nvtx_lock);
    errno = saved;
    return more || cells;
}

static uint32_t claim(void)
{
    uint32_t i = pop_free();
    while (i == NOWHERE && grow())
        i = pop_free();
    return i;
}

/* ---- start and end ---- */

static uint32_t thread_id(void)
{
    return pki_thread_is_joined(pki_self) ? pki_self->tid : (uint32_t)syscall(SYS_gettid);
}

uint64_t pki_nvtx_range_start(const pki_nvtx_event *event)
{
    uint32_t i = claim();
    if (i == NOWHERE) {
        pki_registry_refuse_point();
        return 0;
    }
    cell *c = cell_at(i);
    uint64_t uses = (pki_load(&c->state) >> 2) + 1;
    c->session = pki_registry_serial();
    c->region = pki_region_id(event->region);
    c->begun_by = thread_id();
    pki_store(&c->monotonic, pki_the_session.config.monotonic);
    c->work = event->work;
    c->start = pki_ticks(c->monotonic);
    pki_store_release(&c->state, uses << 2 | OPEN); /* pairs with the acquire in close_cell */
    return (uint64_t)(i + 1) << 40 | (uses & (((uint64_t)1 << 40) - 1));
}

/* One of those who want to close it does. */
static bool close_cell(cell *c, uint64_t uses)
{
    uint64_t state = pki_load_acquire(&c->state);
    return (state & 3) == OPEN && state >> 2 == uses &&
           __atomic_compare_exchange_n(&c->state, &state, uses << 2 | ENDED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void hand_over(uint32_t i)
{
    uint32_t head = pki_load(&ended_head);
    do {
        pki_store(&cell_at(i)->next, head);
    } while (
        !__atomic_compare_exchange_n(&ended_head, &head, i, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED)); /* pairs with the acquire in collect */
}

void pki_nvtx_range_end(uint64_t id, const pki_work *more)
{
    uint32_t i = (uint32_t)(id >> 40) - 1;
    uint64_t uses = id & (((uint64_t)1 << 40) - 1);
    if (id >> 40 == 0 || i / CELLS >= pki_load_acquire(&block_count))
        return;
    cell *c = cell_at(i);
    uint64_t now = pki_ticks(pki_load(&c->monotonic));
    if (!close_cell(c, uses))
        return;
    c->end = now;
    c->ended_by = thread_id();
    if (more && more->payload_type) {
        c->work.payload = more->payload;
        c->work.payload_type = more->payload_type;
    }
    c->work.bytes += more ? more->bytes : 0;
    c->work.flops += more ? more->flops : 0;
    hand_over(i);
}

/* ---- into the trace: under the drain lock ---- */

/* The first track that has nothing at that time or later; nor at the same, since viewers that add
 * up in floating point would see those overlap. */
static uint32_t lane_for(uint64_t start, uint64_t end)
{
    uint32_t lane = 0;
    while (lane < LANES && lane_end[lane] && lane_end[lane] >= start)
        lane++;
    if (lane == LANES)
        return 0;
    lane_end[lane] = end;
    char name[32];
    snprintf(name, sizeof name, lane ? "NVTX ranges %u" : "NVTX ranges", lane + 1);
    return pki_track_add(&(pki_track){.pid = pki_the_session.config.world.pid,
                                      .tid = LANE_TID + lane,
                                      .thread = name,
                                      .sort = PKI_BLOCKS_MAX + lane});
}

static size_t put_payload(const pki_work *work, pki_activity_arg *arg, char text[32])
{
    double real;
    if (!work->payload_type)
        return 0;
    *arg = (pki_activity_arg){"payload", NULL, (int64_t)work->payload};
    memcpy(&real, &work->payload, sizeof real);
    if (work->payload_type == PKI_PAYLOAD_REAL) {
        *pki_put_double(text, real) = '\0';
        arg->text = text;
    }
    return 1;
}

static void add_activity(const cell *c, bool unbalanced)
{
    char real[32];
    pki_activity_arg args[6];
    size_t n = put_payload(&c->work, args, real);
    const pki_name *name = pki_name_at(c->region);
    uint64_t start = pki_activity_ns_of_ticks(c->start), end = pki_activity_ns_of_ticks(c->end);
    if (name->key_length)
        args[n++] = (pki_activity_arg){name->key, NULL, name->value};
    if (c->work.flops)
        args[n++] = (pki_activity_arg){"flops", NULL, (int64_t)c->work.flops};
    args[n++] = (pki_activity_arg){"thread", NULL, c->begun_by};
    if (unbalanced)
        args[n++] = (pki_activity_arg){"unbalanced", NULL, 1};
    else if (c->ended_by != c->begun_by)
        args[n++] = (pki_activity_arg){"ended by", NULL, c->ended_by};
    pki_activity_add(&(pki_activity){.kind = PKI_ACTIVITY_RANGE,
                                     .track = lane_for(start, end),
                                     .name = name->name,
                                     .name_length = name->length,
                                     .start = start,
                                     .end = end,
                                     .device = PKI_NO_DEVICE,
                                     .bytes = c->work.bytes,
                                     .args = args,
                                     .arg_count = n});
}

static void record(const cell *c, bool unbalanced)
{
    if (c->session != pki_registry_serial())
        return; /* its session is over */
    uint64_t start = pki_activity_ns_of_ticks(c->start), end = pki_activity_ns_of_ticks(c->end);
    pki_fold_lock();
    pki_fold_range(pki_fold_now(), c->region, end > start ? end - start : 0, c->work.bytes,
                   c->work.flops);
    pki_fold_unlock();
    add_activity(c, unbalanced);
}

static void free_cell(uint32_t i)
{
    cell *c = cell_at(i);
    pki_store_release(&c->state, pki_load(&c->state) >> 2 << 2 | FREE);
    release(i);
}

/* The last that ended come first: turned round, so that each finds the tracks as they were. */
static uint32_t in_order(uint32_t list)
{
    uint32_t turned = NOWHERE;
    while (list != NOWHERE) {
        uint32_t next = pki_load(&cell_at(list)->next);
        pki_store(&cell_at(list)->next, turned);
        turned = list;
        list = next;
    }
    return turned;
}

static void collect_ranges(void)
{
    uint32_t i = in_order(__atomic_exchange_n(&ended_head, NOWHERE, __ATOMIC_ACQUIRE));
    while (i != NOWHERE) {
        uint32_t next = pki_load(&cell_at(i)->next);
        record(cell_at(i), false);
        free_cell(i);
        i = next;
    }
}

static void end_ranges(void)
{
    collect_ranges();
    for (uint32_t i = 0; i < pki_load_acquire(&block_count) * CELLS; i++) {
        cell *c = cell_at(i);
        if (!close_cell(c, pki_load(&c->state) >> 2))
            continue;
        c->end = pki_ticks(c->monotonic);
        record(c, true);
        free_cell(i);
    }
    memset(lane_end, 0, sizeof lane_end);
}

/* Nobody is at a cell any more; what was open is the parent's. */
static void ranges_after_fork(void)
{
    free_cells = 0;
    ended_head = NOWHERE;
    for (uint32_t i = block_count * CELLS; i-- > 0;)
        free_cell(i);
    memset(lane_end, 0, sizeof lane_end);
}

/* ---- the backend ---- */

static char emitting[192],
    not_consuming[192]; /* of the last start; "" if there was nothing to say */
static bool emits, consumes, started;

static void consume(bool on)
{
    uint64_t named = pki_load(&pki_nvtx_users.categories);
    pki_store(&pki_nvtx_users.wanted, on ? (uint64_t)pki_registry_serial() << 32 | named : 0);
}

static bool start(const pki_config *config)
{
    started = true;
    not_consuming[0] = '\0';
    consumes = config->nvtx_consume && pki_nvtx_inject(config, not_consuming, sizeof not_consuming);
    emits = pki_nvtx_emit_start(emitting, sizeof emitting);
    consume(consumes);
    return emits || consumes;
}

/* Whoever wants other people's ranges wants this backend. */
static bool is_requested(const pki_config *config)
{
    return config->nvtx_consume;
}

static void collect(void)
{
    if (consumes)
        collect_ranges();
}

/* Nobody in the process has called NVTX yet. */
static bool is_idle(void)
{
    return pki_load(&pki_nvtx_users.attached) == 0;
}

static void stop(void)
{
    consume(false);
    if (consumes)
        end_ranges();
}

static void after_fork(void)
{
    consume(false);
    pthread_mutex_init(&pki_nvtx_lock, NULL);
    ranges_after_fork();
}

/* ---- in words ---- */

/* Before pk_start: nothing is opened only to be asked. */
static void describe_before_start(pk_backend_info *info)
{
    const char *path = secure_getenv(PKI_NVTX_VARIABLE);
    char consume[8] = "";
    pki_tuning_of_environment(PKI_TUNING_NVTX_CONSUME, consume, sizeof consume);
    info->live = (path && *path) || strcmp(consume, "1") == 0;
    if (path && *path)
        snprintf(info->reason, sizeof info->reason, PKI_NVTX_VARIABLE " names %.120s", path);
    else if (info->live)
        snprintf(info->reason, sizeof info->reason, "to consume the ranges of other libraries");
    else
        snprintf(info->reason, sizeof info->reason,
                 "no tool listens (" PKI_NVTX_VARIABLE " is not set)");
}

static void describe(pk_backend_info *info)
{
    size_t n = 0, size = sizeof info->reason;
    unsigned users = pki_load(&pki_nvtx_users.attached);
    info->live = emits || consumes;
    if (consumes)
        n = (size_t)snprintf(info->reason, size, "consuming the ranges of %u user%s of NVTX", users,
                             users == 1 ? "" : "s");
    if (*emitting)
        n += (size_t)snprintf(info->reason + n, size - n, "%s%s", n ? "; " : "", emitting);
    if (*not_consuming && n < size)
        n += (size_t)snprintf(info->reason + n, size - n, "%s%s", n ? "; " : "", not_consuming);
    if (n == 0)
        snprintf(info->reason, size, "no tool listens (" PKI_NVTX_VARIABLE " is not set)");
}

static void probe(pk_backend_info *info)
{
    snprintf(info->version, sizeof info->version, "%d", NVTX_VERSION);
    if (started)
        describe(info);
    else
        describe_before_start(info);
}

extern const pki_backend pki_backend_nvtx;
const pki_backend pki_backend_nvtx = {.name = "nvtx",
                                      .by_default = true,
                                      .probe = probe,
                                      .start = start,
                                      .mirror = &mirror,
                                      .requested = is_requested,
                                      .collect = collect,
                                      .idle = is_idle,
                                      .stop = stop,
                                      .after_fork = after_fork};

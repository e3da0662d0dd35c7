#include <string.h>

#include "base/compiler.h"
#include "measure/stacks/stacks.h"

/* ---- bytes of a table ---- */

#define ENTRY_MOST 4096u /* of one entry: what is longer describes a very long function */
#define SAVES 4u         /* of states within each other */
#define STEPS_MOST 4096u /* instructions of one function */
#define POINTER 8u

typedef struct bytes {
    const unsigned char *at, *end;
    bool bad;         /* it went beyond its end */
    uint64_t address; /* of `at`, where that matters */
} bytes;

static uint64_t take(bytes *b, size_t n)
{
    uint64_t value = 0;
    if ((size_t)(b->end - b->at) < n) {
        b->bad = true;
        b->at = b->end;
        return 0;
    }
    memcpy(&value, b->at, n);
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && n)
        value >>= 8 * (sizeof value - n);
    b->at += n;
    b->address += n;
    return value;
}

static int64_t take_signed(bytes *b, size_t n)
{
    uint64_t value = take(b, n), sign = UINT64_C(1) << (8 * n - 1);
    return (int64_t)((value ^ sign) - sign);
}

static uint64_t take_leb(bytes *b, bool has_sign)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = take(b, 1);
        value |= shift < 64 ? (byte & 0x7f) << shift : 0;
        shift += 7;
    } while (byte & 0x80);
    if (has_sign && shift < 64 && byte & 0x40)
        value |= ~UINT64_C(0) << shift;
    return value;
}

static uint64_t take_uleb(bytes *b)
{
    return take_leb(b, false);
}

static int64_t take_sleb(bytes *b)
{
    return (int64_t)take_leb(b, true);
}

static void skip(bytes *b, uint64_t n)
{
    size_t left = (size_t)(b->end - b->at);
    b->bad |= n > left;
    n = PKI_MIN(n, left);
    b->at += n;
    b->address += n;
}

/* A pointer in one of the encodings of .eh_frame (DW_EH_PE_*). base: what it may be relative to. */
static uint64_t take_pointer(bytes *b, unsigned how, uint64_t base)
{
    uint64_t here = b->address, value;
    switch (how & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
        value = take(b, POINTER);
        break;
    case 0x01:
        value = take_uleb(b);
        break;
    case 0x02:
        value = take(b, 2);
        break;
    case 0x03:
        value = take(b, 4);
        break;
    case 0x09:
        value = (uint64_t)take_sleb(b);
        break;
    case 0x0a:
        value = (uint64_t)take_signed(b, 2);
        break;
    case 0x0b:
        value = (uint64_t)take_signed(b, 4);
        break;
    default:
        b->bad = true;
        return 0;
    }
    switch (how & 0x70) {
    case 0x00:
        return value;
    case 0x10:
        return value + here;
    case 0x30:
        return value + base;
    default:
        b->bad = true;
        return 0;
    }
}

/* ---- which entry is about a place ---- */

#define TABLE_ENTRY 8u
#define TABLE_MOST (1u << 24)
#define SORTED_BY_HEADER 0x3b /* two signed words of 4 bytes each, from the header on */
#define OMITTED 0xff

typedef struct reading {
    pki_memory_reader *read;
    void *user;
} reading;

static bool read_at(const reading *m, uint64_t at, void *to, size_t n)
{
    return m->read(m->user, at, to, n);
}

/* Of the last function that begins at that place or before it. */
static bool find_entry(const reading *m, uint64_t header, uint64_t pc, uint64_t *entry)
{
    unsigned char head[24];
    if (!read_at(m, header, head, sizeof head) || head[0] != 1 || head[3] != SORTED_BY_HEADER ||
        head[2] == OMITTED)
        return false;
    bytes b = {head + 4, head + sizeof head, false, header + 4};
    take_pointer(&b, head[1], header);
    uint64_t count = take_pointer(&b, head[2], header), table = b.address;
    if (b.bad || !count || count > TABLE_MOST)
        return false;
    uint64_t low = 0, high = count;
    int32_t pair[2];
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (!read_at(m, table + middle * TABLE_ENTRY, pair, sizeof pair))
            return false;
        if (header + (uint64_t)(int64_t)pair[0] <= pc)
            low = middle;
        else
            high = middle;
    }
    if (!read_at(m, table + low * TABLE_ENTRY, pair, sizeof pair))
        return false;
    *entry = header + (uint64_t)(int64_t)pair[1];
    return header + (uint64_t)(int64_t)pair[0] <= pc;
}

/* Behind its length. */
static bool read_entry(const reading *m, uint64_t at, unsigned char room[ENTRY_MOST], bytes *out)
{
    uint32_t length;
    if (!read_at(m, at, &length, sizeof length) || length < 4 || length > ENTRY_MOST ||
        !read_at(m, at + 4, room, length))
        return false;
    *out = (bytes){room, room + length, false, at + 4};
    return true;
}

/* ---- what entries have in common ---- */

typedef struct common {
    uint64_t code, returns;
    int64_t data;
    unsigned how; /* its pointers are written */
    bool has_more, of_signal;
    bytes program;
    unsigned char room[ENTRY_MOST];
} common;

static void read_augmentation(common *c, bytes *b, const char *letters)
{
    if (*letters++ != 'z')
        return;
    uint64_t length = take_uleb(b);
    bytes more = *b;
    skip(b, length);
    c->has_more = true;
    for (; *letters; letters++)
        if (*letters == 'R')
            c->how = (unsigned)take(&more, 1);
        else if (*letters == 'P') {
            unsigned how = (unsigned)take(&more, 1);
            take_pointer(&more, how & 0x0f, 0);
        } else if (*letters == 'L')
            take(&more, 1);
        else if (*letters == 'S')
            c->of_signal = true;
        else if (*letters != 'B')
            b->bad = true;
    b->bad |= more.bad;
}

static bool read_common(const reading *m, uint64_t at, common *c)
{
    bytes b;
    char letters[8] = "";
    size_t n = 0;
    memset(c, 0, offsetof(common, room));
    if (!read_entry(m, at, c->room, &b) || take(&b, 4) != 0)
        return false;
    uint64_t version = take(&b, 1);
    for (char one; (one = (char)take(&b, 1)) != 0 && n < sizeof letters - 1;)
        letters[n++] = one;
    c->code = take_uleb(&b);
    c->data = take_sleb(&b);
    c->returns = version == 1 ? take(&b, 1) : take_uleb(&b);
    read_augmentation(c, &b, letters);
    c->program = b;
    return !b.bad && (version == 1 || version == 3) && (!letters[0] || letters[0] == 'z') &&
           c->returns < PKI_FRAMES_REGISTERS;
}

/* ---- the instructions ---- */

typedef struct state {
    const common *of;
    pki_frame_row *row;
    pki_saved initial[PKI_FRAMES_REGISTERS];
    pki_frame_row saves[SAVES];
    unsigned saved;
    uint64_t at, pc;      /* the row that is wanted is that of pc... */
    uint64_t from, until; /* ...and of these */
} state;

static void set(state *s, uint64_t number, pki_saved how)
{
    if (number < PKI_FRAMES_REGISTERS)
        s->row->saved[number] = how;
}

static void set_at(state *s, uint64_t number, uint8_t kind, int64_t offset)
{
    bool fits = offset >= INT32_MIN && offset <= INT32_MAX;
    set(s, number, (pki_saved){fits ? kind : PKI_SAVED_UNKNOWN, 0, fits ? (int32_t)offset : 0});
}

static void set_frame(bytes *b, state *s, uint64_t of, int64_t offset)
{
    b->bad |= of >= PKI_FRAMES_REGISTERS;
    s->row->of = (uint8_t)of;
    s->row->offset = offset;
    s->row->expression_bytes = 0;
}

static void set_frame_expression(bytes *b, state *s)
{
    uint64_t n = take_uleb(b);
    if (n > PKI_EXPRESSION_MOST || n > (size_t)(b->end - b->at) || !n)
        b->bad = true;
    else
        memcpy(s->row->expression, b->at, n);
    s->row->expression_bytes = (uint8_t)n;
    skip(b, n);
}

/* Of those that there are one kind is common: at a register + offset. */
static void set_expression(bytes *b, state *s)
{
    uint64_t number = take_uleb(b), n = take_uleb(b);
    bytes e = {b->at, b->at + PKI_MIN(n, (size_t)(b->end - b->at)), false, 0};
    uint64_t first = take(&e, 1);
    int64_t offset = take_sleb(&e);
    bool simple = !e.bad && e.at == e.end && first >= 0x70 && first < 0x70 + 32 &&
                  first - 0x70 < PKI_FRAMES_REGISTERS && offset >= INT32_MIN && offset <= INT32_MAX;
    set(s, number,
        simple ? (pki_saved){PKI_SAVED_BESIDE, (uint8_t)(first - 0x70), (int32_t)offset}
               : (pki_saved){PKI_SAVED_UNKNOWN, 0, 0});
    skip(b, n);
}

static void restore(state *s, uint64_t number)
{
    if (number < PKI_FRAMES_REGISTERS)
        s->row->saved[number] = s->initial[number];
}

static void remember(bytes *b, state *s)
{
    if (s->saved == SAVES)
        b->bad = true;
    else
        s->saves[s->saved++] = *s->row;
}

static void recall(bytes *b, state *s)
{
    if (!s->saved)
        b->bad = true;
    else
        *s->row = s->saves[--s->saved];
}

/* Those that move on to another place. */
static bool run_advance(bytes *b, state *s, unsigned op)
{
    if (op >> 6 == 1)
        s->at += (op & 0x3f) * s->of->code;
    else if (op == 0x01)
        s->at = take_pointer(b, s->of->how, 0);
    else if (op == 0x02)
        s->at += take(b, 1) * s->of->code;
    else if (op == 0x03)
        s->at += take(b, 2) * s->of->code;
    else if (op == 0x04)
        s->at += take(b, 4) * s->of->code;
    else
        return false;
    return true;
}

/* Those about the frame's address. */
static bool run_frame(bytes *b, state *s, unsigned op)
{
    uint64_t of = s->row->of;
    switch (op) {
    case 0x0c:
        of = take_uleb(b);
        set_frame(b, s, of, (int64_t)take_uleb(b));
        return true;
    case 0x12:
        of = take_uleb(b);
        set_frame(b, s, of, take_sleb(b) * s->of->data);
        return true;
    case 0x0d:
        set_frame(b, s, take_uleb(b), s->row->offset);
        return true;
    case 0x0e:
        set_frame(b, s, of, (int64_t)take_uleb(b));
        return true;
    case 0x13:
        set_frame(b, s, of, take_sleb(b) * s->of->data);
        return true;
    case 0x0f:
        set_frame_expression(b, s);
        return true;
    default:
        return false;
    }
}

/* Those about one register. */
static void run_register(bytes *b, state *s, unsigned op)
{
    uint64_t number = op >> 6 ? op & 0x3f : take_uleb(b);
    int64_t data = s->of->data;
    if (op >> 6 == 2)
        set_at(s, number, PKI_SAVED_AT, (int64_t)(take_uleb(b) * (uint64_t)data));
    else if (op >> 6 == 3 || op == 0x06)
        restore(s, number);
    else if (op == 0x05)
        set_at(s, number, PKI_SAVED_AT, (int64_t)(take_uleb(b) * (uint64_t)data));
    else if (op == 0x11)
        set_at(s, number, PKI_SAVED_AT, (int64_t)((uint64_t)take_sleb(b) * (uint64_t)data));
    else if (op == 0x14)
        set_at(s, number, PKI_SAVED_IS, (int64_t)(take_uleb(b) * (uint64_t)data));
    else if (op == 0x15)
        set_at(s, number, PKI_SAVED_IS, (int64_t)((uint64_t)take_sleb(b) * (uint64_t)data));
    else if (op == 0x2f)
        set_at(s, number, PKI_SAVED_AT, -(int64_t)(take_uleb(b) * (uint64_t)data));
    else if (op == 0x07)
        set(s, number, (pki_saved){PKI_SAVED_LOST, 0, 0});
    else if (op == 0x08)
        set(s, number, (pki_saved){PKI_SAVED_SAME, 0, 0});
    else if (op == 0x09) {
        uint64_t in = take_uleb(b);
        set(s, number,
            in < PKI_FRAMES_REGISTERS ? (pki_saved){PKI_SAVED_IN, (uint8_t)in, 0}
                                      : (pki_saved){PKI_SAVED_UNKNOWN, 0, 0});
    } else
        b->bad = true;
}

/* Up to where it is about places behind the one that is wanted. */
static bool run(bytes *b, state *s)
{
    for (unsigned n = 0; b->at < b->end && !b->bad; n++) {
        unsigned op = (unsigned)take(b, 1);
        if (n == STEPS_MOST)
            return false;
        if (run_advance(b, s, op)) {
            if (s->at > s->pc) {
                s->until = PKI_MIN(s->until, s->at);
                return !b->bad;
            }
            s->from = s->at;
        } else if (op == 0x00 || op == 0x2d) /* nothing; or the return address is signed */
            continue;
        else if (op == 0x0a)
            remember(b, s);
        else if (op == 0x0b)
            recall(b, s);
        else if (op == 0x2e) /* bytes of arguments, which the frame's address knows of */
            take_uleb(b);
        else if (op == 0x10)
            set_expression(b, s);
        else if (op == 0x16) {
            set(s, take_uleb(b), (pki_saved){PKI_SAVED_UNKNOWN, 0, 0});
            skip(b, take_uleb(b));
        } else if (!run_frame(b, s, op))
            run_register(b, s, op);
    }
    return !b->bad;
}

bool pki_frame_row_find(pki_memory_reader *read, void *user, uint64_t header, uint64_t pc,
                        pki_frame_row *row)
{
    reading m = {read, user};
    unsigned char room[ENTRY_MOST];
    common c;
    bytes b;
    uint64_t entry;
    memset(row, 0, sizeof *row);
    if (!find_entry(&m, header, pc, &entry) || !read_entry(&m, entry, room, &b))
        return false;
    uint64_t here = b.address, distance = take(&b, 4);
    if (!distance || !read_common(&m, here - distance, &c))
        return false;
    uint64_t start = take_pointer(&b, c.how, 0), length = take_pointer(&b, c.how & 0x0f, 0);
    if (c.has_more)
        skip(&b, take_uleb(&b));
    if (b.bad || pc < start || pc - start >= length)
        return false;
    state s = {.of = &c, .row = row, .pc = UINT64_MAX};
    row->returns = (uint8_t)c.returns;
    row->of_signal = c.of_signal;
    if (!run(&c.program, &s))
        return false;
    memcpy(s.initial, row->saved, sizeof s.initial);
    s.at = s.from = start;
    s.until = start + length;
    s.pc = pc;
    bool there = run(&b, &s);
    row->start = start;
    row->from = s.from;
    row->until = s.until;
    return there;
}

/* ---- to the caller ---- */

#define DEPTH 8u

static bool value_of(const pki_registers *r, unsigned number, uint64_t *value)
{
    if (number >= PKI_FRAMES_REGISTERS || !(r->known >> number & 1))
        return false;
    *value = r->value[number];
    return true;
}

typedef struct operands {
    uint64_t all[DEPTH];
    unsigned count;
    bool bad;
} operands;

static void push(operands *o, uint64_t value)
{
    if (o->count == DEPTH)
        o->bad = true;
    else
        o->all[o->count++] = value;
}

static uint64_t pop(operands *o)
{
    if (o->count)
        return o->all[--o->count];
    o->bad = true;
    return 0;
}

static void run_binary(operands *o, unsigned op)
{
    uint64_t b = pop(o), a = pop(o);
    switch (op) {
    case 0x1a:
        push(o, a & b);
        break;
    case 0x1c:
        push(o, a - b);
        break;
    case 0x1e:
        push(o, a * b);
        break;
    case 0x21:
        push(o, a | b);
        break;
    case 0x22:
        push(o, a + b);
        break;
    case 0x24:
        push(o, b < 64 ? a << b : 0);
        break;
    case 0x25:
        push(o, b < 64 ? a >> b : 0);
        break;
    case 0x2a:
        push(o, (int64_t)a >= (int64_t)b);
        break;
    default:
        o->bad = true;
    }
}

/* What compilers and linkers write: a procedure linkage table's, a frame that was aligned, a
 * signal's (DWARF 4, 7.7.1). */
static bool evaluate(const pki_frame_row *row, const reading *m, const pki_registers *r,
                     uint64_t *out)
{
    bytes b = {row->expression, row->expression + row->expression_bytes, false, 0};
    operands o = {.count = 0};
    while (b.at < b.end && !b.bad && !o.bad) {
        unsigned op = (unsigned)take(&b, 1);
        uint64_t value = 0;
        if (op >= 0x70 && op <= 0x8f) {
            o.bad |= !value_of(r, op - 0x70, &value);
            push(&o, value + (uint64_t)take_sleb(&b));
        } else if (op >= 0x30 && op <= 0x4f)
            push(&o, op - 0x30);
        else if (op == 0x06) {
            o.bad |= !read_at(m, pop(&o), &value, POINTER);
            push(&o, value);
        } else if (op == 0x08)
            push(&o, take(&b, 1));
        else if (op == 0x09)
            push(&o, (uint64_t)take_signed(&b, 1));
        else if (op == 0x0b)
            push(&o, (uint64_t)take_signed(&b, 2));
        else if (op == 0x23)
            push(&o, pop(&o) + take_uleb(&b));
        else
            run_binary(&o, op);
    }
    *out = pop(&o);
    return !b.bad && !o.bad;
}

static void restore_register(const pki_saved *how, const reading *m, const pki_registers *from,
                             uint64_t frame, unsigned number, pki_registers *to)
{
    uint64_t value = 0, other = 0;
    bool known = false;
    switch (how->kind) {
    case PKI_SAVED_SAME:
        known = value_of(from, number, &value);
        break;
    case PKI_SAVED_AT:
        known = read_at(m, frame + (uint64_t)(int64_t)how->offset, &value, POINTER);
        break;
    case PKI_SAVED_IS:
        value = frame + (uint64_t)(int64_t)how->offset;
        known = true;
        break;
    case PKI_SAVED_IN:
        known = value_of(from, how->of, &value);
        break;
    case PKI_SAVED_BESIDE:
        known = value_of(from, how->of, &other) &&
                read_at(m, other + (uint64_t)(int64_t)how->offset, &value, POINTER);
        break;
    default:
        break;
    }
    to->value[number] = value;
    to->known |= (uint64_t)known << number;
}

/* The stack grows downward, so that it ends. */
static bool moved(const pki_registers *from, const pki_registers *to)
{
    uint64_t before = from->value[PKI_FRAMES_SP], now = to->value[PKI_FRAMES_SP];
    bool same = before == now && from->value[PKI_FRAMES_PC] != to->value[PKI_FRAMES_PC];
    return (now > before || same) && to->value[PKI_FRAMES_PC] != 0;
}

/* Both architectures: the caller's, then the return address, lie where it points to. */
static bool leave_by_pointer(const reading *m, pki_registers *r)
{
    uint64_t at, pair[2];
    pki_registers to = {.known = 0};
    if (!value_of(r, PKI_FRAMES_FP, &at) || at < r->value[PKI_FRAMES_SP] || at % POINTER ||
        !read_at(m, at, pair, sizeof pair))
        return false;
    to.value[PKI_FRAMES_FP] = pair[0];
    to.value[PKI_FRAMES_SP] = at + sizeof pair;
    to.value[PKI_FRAMES_PC] = pair[1] & PKI_FRAMES_ADDRESS;
    to.known =
        UINT64_C(1) << PKI_FRAMES_FP | UINT64_C(1) << PKI_FRAMES_SP | UINT64_C(1) << PKI_FRAMES_PC;
    if (!moved(r, &to))
        return false;
    *r = to;
    return true;
}

bool pki_frame_leave(const pki_frame_row *row, pki_memory_reader *read, void *user,
                     pki_registers *r)
{
    reading m = {read, user};
    pki_registers to = {.known = 0};
    uint64_t frame, pc;
    if (!row)
        return leave_by_pointer(&m, r);
    if (row->expression_bytes) {
        if (!evaluate(row, &m, r, &frame))
            return false;
    } else if (value_of(r, row->of, &frame))
        frame += (uint64_t)row->offset;
    else
        return false;
    for (unsigned i = 0; i < PKI_FRAMES_REGISTERS; i++)
        restore_register(&row->saved[i], &m, r, frame, i, &to);
    if (row->saved[PKI_FRAMES_SP].kind == PKI_SAVED_SAME) {
        to.value[PKI_FRAMES_SP] = frame;
        to.known |= UINT64_C(1) << PKI_FRAMES_SP;
    }
    if (row->saved[row->returns].kind == PKI_SAVED_SAME && row->returns == PKI_FRAMES_PC)
        return false; /* nothing says where */
    if (!value_of(&to, row->returns, &pc))
        return false;
    to.value[PKI_FRAMES_PC] = pc & PKI_FRAMES_ADDRESS;
    to.known |= UINT64_C(1) << PKI_FRAMES_PC;
    if (!moved(r, &to))
        return false;
    *r = to;
    return true;
}

bool pki_frame_leave_made(pki_memory_reader *code, pki_memory_reader *read, void *user,
                          pki_registers *r)
{
    reading m = {read, user};
    unsigned char behind[PKI_FRAMES_CODE];
    unsigned room;
    bool pops;
    pki_registers to = *r;
    uint64_t *sp = &to.value[PKI_FRAMES_SP];
    if (!code(NULL, r->value[PKI_FRAMES_PC], behind, sizeof behind) ||
        !pki_frames_return(behind, &room, &pops))
        return leave_by_pointer(&m, r);
    if (pops && !read_at(&m, *sp, &to.value[PKI_FRAMES_FP], POINTER))
        return false;
    *sp += pops ? POINTER : room;
    if (!read_at(&m, *sp, &to.value[PKI_FRAMES_PC], POINTER))
        return false;
    *sp += POINTER;
    if (!moved(r, &to))
        return false;
    *r = to;
    return true;
}

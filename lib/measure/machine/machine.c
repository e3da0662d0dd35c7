#include "measure/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/process.h"
#include "base/processors.h"
#include "base/text.h"
#include "measure/machine/roofline.h"

/* ---- text ---- */

#define FIRST_LINE "perfkit machine 1"
#define LINE_MOST 256

static PKI_PRINTF(3, 4) bool refuse(char *why, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return false;
}

/* ---- words of a line ---- */

/* The next word of *line, which it is taken from. */
static bool parse_word(const char **line, char *word, size_t size)
{
    size_t n = strcspn(*line, " ");
    if (n == 0 || n >= size)
        return false;
    memcpy(word, *line, n);
    word[n] = '\0';
    *line += n + ((*line)[n] == ' ');
    return true;
}

static bool parse_number(const char **line, uint64_t *value)
{
    char word[24];
    if (!parse_word(line, word, sizeof word))
        return false;
    *value = 0;
    for (const char *c = word; *c; c++) {
        if (*c < '0' || *c > '9')
            return false;
        *value = *value * 10 + (uint64_t)(*c - '0');
        if (*value > PKI_MACHINE_RATE_MOST)
            return false;
    }
    return true;
}

static bool parse_rest(const char *line, char *text, size_t size)
{
    size_t n = strlen(line);
    if (n == 0 || n >= size)
        return false;
    memset(text, 0, size); /* a word that comes twice leaves nothing of the first */
    memcpy(text, line, n);
    return true;
}

static bool parse_limit(const char *line, pki_machine *m)
{
    pki_limit limit;
    char who[8];
    memset(&limit, 0, sizeof limit);
    bool whole = parse_word(&line, limit.name, sizeof limit.name) &&
                 parse_word(&line, who, sizeof who) && parse_number(&line, &limit.best) &&
                 parse_number(&line, &limit.median) && parse_number(&line, &limit.worst) &&
                 parse_number(&line, &limit.rounds) && !*line;
    limit.all = whole && strcmp(who, "all") == 0;
    return whole && (limit.all || strcmp(who, "one") == 0) && limit.worst > 0 &&
           limit.worst <= limit.median && limit.median <= limit.best && limit.rounds > 0 &&
           pki_machine_add(m, &limit);
}

/* Is what is said behind the word what it should be? Unknown words are a later version's. */
static bool parse_line(const char *line, pki_machine *m)
{
    char word[32];
    if (!parse_word(&line, word, sizeof word))
        return false;
    if (strcmp(word, "host") == 0)
        return parse_rest(line, m->host, sizeof m->host);
    if (strcmp(word, "cpu") == 0)
        return parse_rest(line, m->cpu, sizeof m->cpu);
    if (strcmp(word, "processors") == 0)
        return parse_number(&line, &m->processors) && !*line && m->processors > 0;
    if (strcmp(word, "measured") == 0)
        return parse_number(&line, &m->measured) && !*line;
    if (strcmp(word, "limit") == 0)
        return parse_limit(line, m);
    return true;
}

/* ---- a file ---- */

/* Printable, so that a report may quote it. */
static bool is_text(const char *line, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t character = pki_utf8_length(line + i, n - i);
        if (character == 0 || (unsigned char)line[i] < 0x20 || line[i] == 0x7F)
            return false;
        i += character;
    }
    return true;
}

bool pki_machine_parse(const char *text, size_t length, pki_machine *m, char *why, size_t size)
{
    char line[LINE_MOST];
    unsigned number = 0;
    memset(m, 0, sizeof *m);
    if (length >= PKI_MACHINE_BYTES)
        return refuse(why, size, "longer than %u bytes", PKI_MACHINE_BYTES - 1);
    for (size_t at = 0, n; at < length; at += n + 1) {
        const char *end = memchr(text + at, '\n', length - at);
        n = end ? (size_t)(end - (text + at)) : length - at;
        number++;
        if (!end)
            return refuse(why, size, "line %u is cut off", number);
        if (n >= sizeof line || !is_text(text + at, n))
            return refuse(why, size, "line %u is no text", number);
        memcpy(line, text + at, n);
        line[n] = '\0';
        if (number == 1 && strcmp(line, FIRST_LINE) != 0)
            return refuse(why, size, "does not begin with \"%s\"", FIRST_LINE);
        if (number > 1 && !parse_line(line, m))
            return refuse(why, size, "line %u makes no sense: %.60s", number, line);
    }
    if (!m->host[0] || !m->cpu[0] || !m->processors || !m->limit_count)
        return refuse(why, size, "host, cpu, processors or limits are missing");
    return true;
}

size_t pki_machine_print(const pki_machine *m, char text[PKI_MACHINE_BYTES])
{
    /* At most 32 limits of 32 + 4 x 20 bytes and a few words: it fits. */
    size_t n = (size_t)snprintf(text, PKI_MACHINE_BYTES,
                                FIRST_LINE "\nhost %s\ncpu %s\nprocessors %" PRIu64
                                           "\nmeasured %" PRIu64 "\n",
                                m->host, m->cpu, m->processors, m->measured);
    for (size_t i = 0; i < m->limit_count; i++) {
        const pki_limit *l = &m->limits[i];
        n += (size_t)snprintf(text + n, PKI_MACHINE_BYTES - n,
                              "limit %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                              l->name, l->all ? "all" : "one", l->best, l->median, l->worst,
                              l->rounds);
    }
    return n;
}

bool pki_machine_add(pki_machine *m, const pki_limit *limit)
{
    if (m->limit_count == PKI_MACHINE_LIMITS)
        return false;
    m->limits[m->limit_count++] = *limit;
    return true;
}

uint64_t pki_machine_best(const pki_machine *m, const char *name, bool all)
{
    uint64_t best = 0;
    size_t n = strlen(name);
    bool family = n && name[n - 1] == '-';
    for (size_t i = 0; i < m->limit_count; i++) {
        const pki_limit *l = &m->limits[i];
        bool is_it = family ? strncmp(l->name, name, n) == 0 : strcmp(l->name, name) == 0;
        if (is_it && l->all == all && l->best > best)
            best = l->best;
    }
    return best;
}

/* ---- this machine ---- */

/* Up to size - 1 bytes from the beginning of a file, and a NUL. -1 and errno. */
static ssize_t read_head(int fd, char *text, size_t size)
{
    size_t have = 0;
    ssize_t n = 0;
    while (have + 1 < size && (n = read(fd, text + have, size - 1 - have)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        have += (size_t)n;
    }
    text[have] = '\0';
    return (ssize_t)have;
}

/* ---- which machine this is ---- */

static void find_cpu(char *cpu, size_t size)
{
    struct utsname name;
    if (!pki_cpu_name("", cpu, size))
        snprintf(cpu, size, "%s", uname(&name) == 0 ? name.machine : "unknown");
}

/* What the file takes: no control characters, no bytes beyond ASCII. */
static void make_plain(char *text, const char *otherwise, size_t size)
{
    for (char *c = text; *c; c++)
        if (*c < 0x20 || *c > 0x7E)
            *c = '?';
    if (!*text)
        snprintf(text, size, "%s", otherwise);
}

void pki_machine_here(pki_machine *m)
{
    struct utsname name;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    memset(m, 0, sizeof *m);
    if (uname(&name) == 0)
        snprintf(m->host, sizeof m->host, "%.63s", name.nodename);
    find_cpu(m->cpu, sizeof m->cpu);
    make_plain(m->host, "unknown", sizeof m->host);
    make_plain(m->cpu, "unknown", sizeof m->cpu);
    m->processors = online > 0 ? (uint64_t)online : 1;
}

/* ---- its file ---- */

bool pki_machine_path(const char *host, char path[PATH_MAX])
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    char safe[64];
    int n;
    snprintf(safe, sizeof safe, "%s", host);
    for (char *c = safe; *c; c++)
        if (*c == '/')
            *c = '_';
    /* Relative paths are to be ignored, says the XDG specification. */
    if (cache && cache[0] == '/')
        n = snprintf(path, PATH_MAX, "%s/perfkit/machine-%s.txt", cache, safe);
    else if (home && home[0] == '/')
        n = snprintf(path, PATH_MAX, "%s/.cache/perfkit/machine-%s.txt", home, safe);
    else
        return false;
    return n > 0 && n < PATH_MAX;
}

static bool read_file(const char *path, char text[PKI_MACHINE_BYTES + 1], size_t *length, char *why,
                      size_t size)
{
    struct stat s;
    /* A pipe in its place would have the program wait. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = -1;
    if (fd < 0) {
        snprintf(why, size, "%s", strerror(errno));
        return false;
    }
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode))
        n = read_head(fd, text, PKI_MACHINE_BYTES + 1);
    close(fd);
    if (n < 0)
        snprintf(why, size, "is no file that can be read");
    *length = n < 0 ? 0 : (size_t)n;
    return n >= 0;
}

static bool is_here(const pki_machine *m, bool named, char *why, size_t size)
{
    pki_machine here;
    pki_machine_here(&here);
    if (strcmp(here.cpu, m->cpu) != 0)
        snprintf(why, size, "was measured on %.60s, and this is %.60s", m->cpu, here.cpu);
    else if (here.processors != m->processors)
        snprintf(why, size, "was measured with %llu processors, and there are %llu",
                 (unsigned long long)m->processors, (unsigned long long)here.processors);
    else if (!named && strcmp(here.host, m->host) != 0)
        snprintf(why, size, "was measured on host %s, and this is %s", m->host, here.host);
    else
        return true;
    return false;
}

bool pki_machine_read(const char *path, pki_machine *m, char *why, size_t size)
{
    char text[PKI_MACHINE_BYTES + 1];
    size_t length;
    return read_file(path, text, &length, why, size) &&
           pki_machine_parse(text, length, m, why, size);
}

bool pki_machine_load(const char *path, bool named, pki_machine *m, char *why, size_t size)
{
    return pki_machine_read(path, m, why, size) && is_here(m, named, why, size);
}

/* ---- what GPUs can do, as their vendor says. Not measured ---- */

#define T 1e12
#define GB 1e9

#define H100 "NVIDIA H100 Tensor Core GPU data sheet"
#define H200 "NVIDIA H200 Tensor Core GPU data sheet"
#define A100 "NVIDIA A100 Tensor Core GPU data sheet"
#define V100 "NVIDIA V100 Tensor Core GPU data sheet"

/* Where a data sheet gives tensor rates with sparsity alone, half of them stands here. A comment is
 * not what a reader of a report sees, so `source` is. */
const pki_device_limits pki_devices[] = {
    /* name, source, bandwidth, fp64, fp64 tensor, fp32, tf32, bf16, fp16, fp8 */
    {"NVIDIA H200", H200, 4800 * GB, 34 * T, 67 * T, 67 * T, 494.5 * T, 989.5 * T, 989.5 * T,
     1979 * T},
    {"NVIDIA H100 80GB HBM3", H100, 3350 * GB, 34 * T, 67 * T, 67 * T, 494.5 * T, 989.5 * T,
     989.5 * T, 1979 * T},
    {"NVIDIA H100 PCIe", H100, 2000 * GB, 26 * T, 51 * T, 51 * T, 378 * T, 756.5 * T, 756.5 * T,
     1513 * T},
    {"NVIDIA A100-SXM4-40GB", A100, 1555 * GB, 9.7 * T, 19.5 * T, 19.5 * T, 156 * T, 312 * T,
     312 * T, 0},
    {"NVIDIA A100-SXM4-80GB", A100, 2039 * GB, 9.7 * T, 19.5 * T, 19.5 * T, 156 * T, 312 * T,
     312 * T, 0},
    {"NVIDIA A100-PCIE-40GB", A100, 1555 * GB, 9.7 * T, 19.5 * T, 19.5 * T, 156 * T, 312 * T,
     312 * T, 0},
    {"NVIDIA A100 80GB PCIe", A100, 1935 * GB, 9.7 * T, 19.5 * T, 19.5 * T, 156 * T, 312 * T,
     312 * T, 0},
    {"NVIDIA A30", "NVIDIA A30 Tensor Core GPU data sheet", 933 * GB, 5.2 * T, 10.3 * T, 10.3 * T,
     82 * T, 165 * T, 165 * T, 0},
    {"NVIDIA A10", "NVIDIA A10 Tensor Core GPU data sheet", 600 * GB, 0, 0, 31.2 * T, 62.5 * T,
     125 * T, 125 * T, 0},
    {"NVIDIA A40", "NVIDIA A40 data sheet", 696 * GB, 0, 0, 37.4 * T, 74.8 * T, 149.7 * T,
     149.7 * T, 0},
    {"NVIDIA L4", "NVIDIA L4 Tensor Core GPU data sheet", 300 * GB, 0, 0, 30.3 * T, 60 * T, 121 * T,
     121 * T, 242.5 * T},
    {"NVIDIA L40", "NVIDIA L40 data sheet", 864 * GB, 0, 0, 90.5 * T, 90.5 * T, 181 * T, 181 * T,
     362 * T},
    {"NVIDIA L40S", "NVIDIA L40S data sheet", 864 * GB, 0, 0, 91.6 * T, 183 * T, 362 * T, 362 * T,
     733 * T},
    {"Tesla V100-SXM2-16GB", V100, 900 * GB, 7.8 * T, 0, 15.7 * T, 0, 0, 125 * T, 0},
    {"Tesla V100-SXM2-32GB", V100, 900 * GB, 7.8 * T, 0, 15.7 * T, 0, 0, 125 * T, 0},
    {"Tesla V100-PCIE-16GB", V100, 900 * GB, 7 * T, 0, 14 * T, 0, 0, 112 * T, 0},
    {"Tesla V100-PCIE-32GB", V100, 900 * GB, 7 * T, 0, 14 * T, 0, 0, 112 * T, 0},
    {"Tesla T4", "NVIDIA T4 Tensor Core GPU data sheet", 320 * GB, 0, 0, 8.1 * T, 0, 0, 65 * T, 0},
};
const size_t pki_device_count = PKI_COUNT_OF(pki_devices);

const pki_device_limits *pki_device_find(const char *name)
{
    for (size_t i = 0; i < pki_device_count; i++)
        if (strcmp(pki_devices[i].name, name) == 0)
            return &pki_devices[i];
    return NULL;
}

/* ---- the peak that a step's operations are held against, with its source ---- */

#define FLOPS_MOST 1e30
#define USUAL "fp32" /* of processors */

/* ---- the option ---- */

static double of_device(const pki_device_limits *d, const char *precision)
{
    const struct {
        const char *name;
        double flops;
    } rates[] = {{"fp64", PKI_MAX(d->fp64, d->fp64_tensor)},
                 {"fp32", d->fp32},
                 {"tf32", d->tf32},
                 {"bf16", d->bf16},
                 {"fp16", d->fp16},
                 {"fp8", d->fp8}};
    for (size_t i = 0; i < PKI_COUNT_OF(rates); i++)
        if (strcmp(rates[i].name, precision) == 0)
            return rates[i].flops;
    return -1;
}

static bool is_precision(const char *name)
{
    static const pki_device_limits none;
    return of_device(&none, name) >= 0;
}

/* "989.5e12", in every locale: digits, perhaps a point and digits, perhaps an exponent. */
static bool read_flops(const char *text, double *flops)
{
    double scale = 1;
    int exponent = 0;
    const char *at = text;
    for (*flops = 0; *at >= '0' && *at <= '9'; at++)
        *flops = *flops * 10 + (*at - '0');
    if (at == text)
        return false;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            *flops += (*at - '0') * (scale /= 10);
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+');
        if (*at < '0' || *at > '9')
            return false;
        for (; *at >= '0' && *at <= '9' && exponent < 100; at++)
            exponent = exponent * 10 + (*at - '0');
    }
    for (; exponent > 0 && *flops <= FLOPS_MOST; exponent--)
        *flops *= 10;
    return *at == '\0' && *flops >= 1 && *flops <= FLOPS_MOST;
}

bool pki_peak_parse(const char *text, pki_peak_wish *wish)
{
    size_t n = strcspn(text, ":");
    *wish = (pki_peak_wish){.flops = 0};
    if (n < sizeof wish->precision) {
        memcpy(wish->precision, text, n);
        if (is_precision(wish->precision))
            return text[n] == '\0' || read_flops(text + n + 1, &wish->flops);
    }
    memset(wish->precision, 0, sizeof wish->precision);
    return read_flops(text, &wish->flops);
}

/* ---- where it comes from ---- */

static void find_device(const pki_peak_wish *wish, const pki_peak_place *place, pki_peak *peak)
{
    const pki_device_limits *d = pki_device_find(place->gpu);
    size_t count = PKI_MAX(place->gpus, 1);
    if (!place->gpu[0])
        snprintf(peak->source, sizeof peak->source,
                 "this process used devices whose model is unknown: "
                 "peak=PRECISION:OPERATIONS_PER_SECOND says what they can do");
    else if (!d)
        snprintf(peak->source, sizeof peak->source,
                 "%s is not in the table of data sheets: peak=PRECISION:OPERATIONS_PER_SECOND says "
                 "what it can do",
                 place->gpu);
    else if (!wish->precision[0])
        snprintf(peak->source, sizeof peak->source,
                 "%s has a peak for each precision, and none was named: peak=bf16, for example",
                 place->gpu);
    else if (of_device(d, wish->precision) <= 0)
        snprintf(peak->source, sizeof peak->source, "the %s has no figure for %s", d->source,
                 wish->precision);
    else {
        peak->flops = (double)count * of_device(d, wish->precision);
        snprintf(peak->source, sizeof peak->source, "%zu x %s, dense, by the %s", count, d->name,
                 d->source);
    }
}

static void describe_processors(const pki_peak_wish *wish, const pki_peak_place *place,
                                pki_peak *peak)
{
    time_t when = (time_t)place->machine->measured;
    struct tm utc;
    memset(&utc, 0, sizeof utc);
    gmtime_r(&when, &utc);
    snprintf(peak->source, sizeof peak->source,
             "%llu processor%s of %s, as pk machine measured on %d-%02d-%02d%s",
             (unsigned long long)place->processors, place->processors == 1 ? "" : "s",
             place->machine->host, utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
             wish->precision[0] ? "" : "; single precision, since no other was named");
}

static void find_processors(const pki_peak_wish *wish, const pki_peak_place *place, pki_peak *peak)
{
    const char *precision = wish->precision[0] ? wish->precision : USUAL;
    bool is_double = strcmp(precision, "fp64") == 0;
    const char *name = is_double ? PKI_LIMIT_DOUBLE : PKI_LIMIT_SINGLE;
    if (!is_double && strcmp(precision, "fp32") != 0) {
        snprintf(peak->source, sizeof peak->source,
                 "no peak of processors in %s is measured: peak=%s:OPERATIONS_PER_SECOND states it",
                 precision, precision);
        return;
    }
    if (!place->machine) {
        snprintf(peak->source, sizeof peak->source,
                 "what the processors can do is not known (%s): pk machine measures it",
                 place->no_machine);
        return;
    }
    double one = (double)pki_machine_best(place->machine, name, false);
    double all = (double)pki_machine_best(place->machine, name, true);
    peak->flops = PKI_MIN((double)place->processors * one, PKI_MAX(one, all));
    snprintf(peak->precision, sizeof peak->precision, "%s", precision);
    if (peak->flops > 0)
        describe_processors(wish, place, peak);
    else
        snprintf(peak->source, sizeof peak->source, "pk machine's file has no peak in %s",
                 precision);
}

void pki_peak_find(const pki_peak_wish *wish, const pki_peak_place *place, pki_peak *peak)
{
    bool by_precision = wish->precision[0] && strcmp(wish->precision, "fp32") != 0 &&
                        strcmp(wish->precision, "fp64") != 0;
    memset(peak, 0, sizeof *peak);
    snprintf(peak->precision, sizeof peak->precision, "%s", wish->precision);
    if (wish->flops > 0) {
        peak->flops = wish->flops;
        snprintf(peak->source, sizeof peak->source, "as the option peak says");
    } else if (place->gpus || (by_precision && place->gpu[0])) {
        find_device(wish, place, peak);
    } else {
        find_processors(wish, place, peak);
    }
}

void pki_utilisation_rate(pki_utilisation *u, const pki_peak *peak)
{
    double possible = peak->flops * (double)u->time / 1e9;
    u->peak = peak->flops;
    u->mfu = possible > 0 ? u->model / possible : 0;
    u->hfu = possible > 0 ? u->hardware / possible : 0;
}

bool pki_utilisation_fill(pki_utilisation *u, const pki_peak *peak)
{
    if (!u->steps)
        return true;
    free(u->precision);
    free(u->source);
    pki_utilisation_rate(u, peak);
    u->precision = strdup(peak->precision);
    u->source = strdup(peak->source);
    return u->precision && u->source;
}

/* ---- regions with bytes and operations beside what the machine can do ---- */

#define MORE_AT_WORK 1.2

/* What so many threads can do. */
typedef struct roof {
    double bandwidth, peak[2];
} roof;

enum { DOUBLE, SINGLE };

static bool is_placed(const pki_region_row *r)
{
    bool on_devices = r->gpu.count || r->kernels.count;
    return r->time.sum > 0 && !on_devices && (r->flops || (r->bytes && r->kind == PK_COMPUTE));
}

bool pki_roofline_wanted(const pki_summary *s)
{
    for (size_t i = 0; i < s->region_count; i++)
        if (is_placed(&s->regions[i]))
            return true;
    return false;
}

/* All processors do no less than one, whatever a noisy moment has said. */
static double of_threads(double one, double all, double threads)
{
    return PKI_MIN(threads * one, PKI_MAX(one, all));
}

static roof roof_of(const pki_roofline *r, double threads)
{
    return (roof){of_threads(r->bandwidth_one, r->bandwidth_all, threads),
                  {of_threads(r->double_one, r->double_all, threads),
                   of_threads(r->single_one, r->single_all, threads)}};
}

/* The achieved share of the attainable, and which of the two it is bound by. */
static double share_of(const pki_roofline_row *row, const roof *limits, int precision, bool *memory)
{
    double by_memory = row->bytes_per_second / limits->bandwidth;
    double by_compute = row->flops_per_second / limits->peak[precision];
    *memory = by_memory > by_compute;
    return PKI_MAX(by_memory, by_compute);
}

static bool place_region(const pki_roofline *r, const pki_region_row *region, pki_roofline_row *row)
{
    double seconds = region->time.sum / 1e9;
    double threads = PKI_MIN(PKI_MAX(region->threads, 1), (double)r->processors);
    roof limits = roof_of(r, threads);
    *row = (pki_roofline_row){.region = strdup(region->name),
                              .share = (double)region->self,
                              .threads = threads,
                              .bytes_per_second = threads * (double)region->bytes / seconds,
                              .flops_per_second = threads * (double)region->flops / seconds};
    if (region->bytes)
        row->intensity = (double)region->flops / (double)region->bytes;
    row->all_processors = row->flops_per_second > MORE_AT_WORK * limits.peak[SINGLE];
    if (row->all_processors)
        limits = roof_of(r, (double)r->processors);
    row->of_double = share_of(row, &limits, DOUBLE, &row->memory_bound_double);
    row->of_single = share_of(row, &limits, SINGLE, &row->memory_bound_single);
    return row->region != NULL;
}

static bool fill_limits(const pki_machine *m, pki_roofline *r)
{
    *r = (pki_roofline){.measured = PKI_MAX(m->measured, 1),
                        .host = strdup(m->host),
                        .cpu = strdup(m->cpu),
                        .processors = m->processors,
                        .bandwidth_one = (double)pki_machine_best(m, PKI_LIMIT_TRIAD, false),
                        .bandwidth_all = (double)pki_machine_best(m, PKI_LIMIT_TRIAD, true),
                        .double_one = (double)pki_machine_best(m, PKI_LIMIT_DOUBLE, false),
                        .double_all = (double)pki_machine_best(m, PKI_LIMIT_DOUBLE, true),
                        .single_one = (double)pki_machine_best(m, PKI_LIMIT_SINGLE, false),
                        .single_all = (double)pki_machine_best(m, PKI_LIMIT_SINGLE, true)};
    return r->host && r->cpu;
}

/* Each row's part of the self time of all regions. */
static void fill_shares(const pki_summary *s, pki_roofline *r)
{
    double all = 0;
    for (size_t i = 0; i < s->region_count; i++)
        all += (double)s->regions[i].self;
    for (size_t i = 0; i < r->row_count; i++)
        r->rows[i].share = all > 0 ? r->rows[i].share / all : 0;
}

bool pki_roofline_fill(const pki_machine *m, pki_summary *s)
{
    pki_roofline *r = &s->roofline;
    if (!pki_roofline_wanted(s))
        return true;
    bool filled = fill_limits(m, r);
    r->rows = calloc(s->region_count, sizeof *r->rows);
    /* A file that lacks one of them can say nothing of it. */
    if (!(r->bandwidth_one > 0 && r->double_one > 0 && r->single_one > 0))
        r->measured = 0;
    for (size_t i = 0; filled && r->rows && r->measured && i < s->region_count; i++)
        if (is_placed(&s->regions[i]))
            filled = place_region(r, &s->regions[i], &r->rows[r->row_count++]);
    fill_shares(s, r);
    return filled && r->rows;
}

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
#include <unistd.h>

#include "base/compiler.h"
#include "base/process.h"
#include "base/processors.h"
#include "base/text.h"

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

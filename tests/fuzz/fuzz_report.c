/* Any bytes as a report or trace file: whatever is made of them, it is made without harm, and twice
 * the same.
 *
 * With libFuzzer: ninja -C BUILD tests/fuzz/libfuzzer-report (a build with clang), then run it with
 * a copy of corpus/. Without: fuzz_main.c.
 */
#include "read/json.h"
#include "read/scan.h"
#include "load/load.h"
#include "out/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define JSON_MEMORY ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

/* A name for the bytes; *fd is to be closed. */
static const char *as_file(const void *data, size_t size, int *fd)
{
    static char path[64];
    *fd = memfd_create("fuzz", 0);
    must(*fd >= 0 && write(*fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", *fd);
    return path;
}

static bool load(const void *data, size_t size, pki_summary *summary)
{
    complaint why = {""};
    int fd;
    const char *path = as_file(data, size, &fd);
    bool loaded = load_run(path, &(load_options){.per_thread = true}, summary, &why);
    close(fd);
    must(loaded == !why.text[0]); /* either a summary or a reason */
    return loaded;
}

static char *written(const pki_summary *summary, int (*write_report)(const pki_summary *, FILE *),
                     size_t *length)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, length);
    must(file && write_report(summary, file) == 0);
    fclose(file);
    return text;
}

/* The other reader of reports, `pk job`'s: of anything it says what it is, of ours that it is fine.
 */
static bool scanned(const char *text, size_t length)
{
    pki_summary summary;
    complaint why = {""};
    scan s = {.at = text, .end = text + length, .why = &why};
    pki_summary_init(&summary);
    bool fine = scan_object(&s, &pki_rank_shape, &summary);
    must(fine == !why.text[0]);
    pki_summary_finish(&summary);
    return fine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pki_summary summary, again;
    size_t length, json_length, again_length;
    json_limit_memory(JSON_MEMORY);
    scan_limit_memory(JSON_MEMORY);
    scanned((const char *)data, size);
    if (!load(data, size, &summary))
        return 0;
    free(written(&summary, pki_report_text, &length));
    char *json = written(&summary, pki_report_json, &json_length);
    pki_summary_finish(&summary);
    must(scanned(json, json_length));
    /* What we write we read, and nothing gets lost on the way. */
    must(load(json, json_length, &again));
    char *json_again = written(&again, pki_report_json, &again_length);
    pki_summary_finish(&again);
    must(json_length == again_length && memcmp(json, json_again, json_length) == 0);
    free(json);
    free(json_again);
    return 0;
}

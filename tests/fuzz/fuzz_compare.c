/* Any bytes as a file of benchmarks: it is refused with a reason, or compared with itself without
 * harm, and then nothing became slower or faster.
 *
 * With libFuzzer: ninja -C BUILD tests/fuzz/libfuzzer-compare (a build with clang), then run it
 * with a copy of tests/golden/compare-*.json. Without: fuzz_main.c.
 */
#include "compare/compare.h"
#include "read/json.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define JSON_MEMORY ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

static bool load(const uint8_t *data, size_t size, bench_file *file)
{
    char path[64];
    complaint why = {""};
    int fd = memfd_create("fuzz", 0);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool loaded = bench_file_load(file, path, &why);
    close(fd);
    must(loaded == !why.text[0]);
    return loaded;
}

static void show(const comparison *c, compare_show *one)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    must(file != NULL);
    one(c, 1, file);
    must(fclose(file) == 0 && length > 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const compare_options options = {COMPARE_THRESHOLD, COMPARE_ALPHA, COMPARE_MOMENTS, false,
                                     false};
    bench_file file;
    comparison c;
    complaint why = {""};
    json_limit_memory(JSON_MEMORY);
    if (!load(data, size, &file))
        return 0;
    const bench_file *old = &file;
    bool compared = compare_files(&old, 1, &file, &options, &c, &why);
    must(compared == !why.text[0]);
    if (compared) {
        must(!c.changes[PKI_SLOWER] && !c.changes[PKI_FASTER]);
        show(&c, compare_text);
        show(&c, compare_markdown);
        show(&c, compare_json);
        show(&c, compare_junit);
        comparison_finish(&c);
    }
    bench_file_finish(&file);
    return 0;
}

/* tools/bench/compare/junit.c - what CI services show as tests: slower is a failure, what was not
 * compared is skipped. */
#include "bench/compare/compare.h"
#include "bench/forms/markup.h"

static void put_attribute(FILE *file, const char *key, const char *value)
{
    fprintf(file, " %s=\"", key);
    pki_bench_put_xml(file, value);
    fputc('"', file);
}

static void put_case(FILE *file, const comparison *c, const compare_row *row)
{
    bool slower = row->decided && row->decision.change == PKI_SLOWER;
    char figures[1536];
    snprintf(figures, sizeof figures, "%s: %s -> %s, ratio %s, interval %s",
             compare_format_verdict(row).text, compare_format_time(row->old_time).text,
             compare_format_time(row->new_time).text, compare_format_ratio(row).text,
             compare_format_interval(row).text);
    fputs("    <testcase", file);
    put_attribute(file, "classname", c->new_path);
    put_attribute(file, "name", row->name);
    fputs(">\n      <", file);
    if (slower || !row->decided) {
        fputs(slower ? "failure" : "skipped", file);
        put_attribute(file, "message", figures);
        fputs("/>\n", file);
    } else {
        fputs("system-out>", file);
        pki_bench_put_xml(file, figures);
        fputs("</system-out>\n", file);
    }
    fputs("    </testcase>\n", file);
}

static void put_suite(FILE *file, const comparison *c)
{
    char name[600];
    snprintf(name, sizeof name, "%s -> %s", c->old_path, c->new_path);
    fputs("  <testsuite", file);
    put_attribute(file, "name", name);
    fprintf(file, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n", c->count,
            c->changes[PKI_SLOWER], c->undecided);
    for (size_t i = 0; i < c->count; i++)
        put_case(file, c, &c->rows[i]);
    fputs("  </testsuite>\n", file);
}

void compare_junit(const comparison *steps, size_t count, FILE *file)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", file);
    for (size_t i = 0; i < count; i++)
        put_suite(file, &steps[i]);
    fputs("</testsuites>\n", file);
}

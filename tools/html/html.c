#include "html/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "out/json_write.h"
#include "out/report/report.h"

/* ---- the file of a page: what can be one, and writing it ---- */

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

bool html_can_write(const char *path, complaint *why)
{
    if (html_before_bytes == 0)
        return complaint_set(
            why, "this pk was built without uPlot, which draws the charts of --html: in perfkit's"
                 " sources run `./dev charts`, then `meson setup --reconfigure` and build");
    return is_standard(path) || output_check(path, OUTPUT_OR_STANDARD, why);
}

bool html_write_file(const char *path, html_page *write, const void *of, complaint *why)
{
    output page = {.to = stdout};
    if (!is_standard(path) && !output_open(&page, path, OUTPUT_OR_STANDARD, why))
        return false;
    int error = write(of, page.to);
    if (error)
        complaint_set(why, "%s could not be written: %s", path, strerror(-error));
    return is_standard(path) ? !error : output_close(&page, !error, why);
}

/* ---- a run's report as one page for a browser, which asks nothing of any network ---- */

/* JSON inside a script element: only strings can hold what means something to a parser of HTML (or
 * ends a line for one of scripts), so all of it may be escaped. Line breaks are between values. */
static void put_escaped(const char *json, size_t length, FILE *file)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)json[i];
        bool separator = c == 0xE2 && i + 2 < length && (unsigned char)json[i + 1] == 0x80 &&
                         ((unsigned char)json[i + 2] & 0xFE) == 0xA8;
        if (separator) {
            fputs((unsigned char)json[i + 2] & 1 ? "\\u2029" : "\\u2028", file);
            i += 2;
        } else if (c == '<' || c == '>' || c == '&') {
            fprintf(file, "\\u%04x", c);
        } else {
            putc(c, file);
        }
    }
}

/* What `write` makes of it, in an element of that id. */
static int put_data(const char *id, html_page *write, const void *of, FILE *file)
{
    char *json = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&json, &length);
    if (!memory)
        return -errno;
    int error = write(of, memory);
    if (fclose(memory) != 0 && !error)
        error = -errno;
    if (!error) {
        fprintf(file, "<script type=\"application/json\" id=\"%s\">", id);
        put_escaped(json, length, file);
        fputs("</script>\n", file);
    }
    free(json);
    return error;
}

static int write_summary(const void *of, FILE *file)
{
    return pki_report_json_line(of, file);
}

/* The files' names: run, against. */
static int write_names(const void *of, FILE *file)
{
    const char *const *names = of;
    pki_json json = {.file = file};
    pki_json_open(&json, NULL, '{');
    pki_json_text(&json, "run", names[0]);
    if (names[1])
        pki_json_text(&json, "against", names[1]);
    pki_json_close(&json, '}');
    return 0;
}

static int write_timeline(const void *of, FILE *file)
{
    const html_run *run = of;
    pki_json json = {.file = file};
    timeline_put(run->events, &run->summary->beside, &json);
    return 0;
}

static bool has_timeline(const html_run *run)
{
    return run->events && run->events->step_count && run->summary->beside.took;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int end_page(FILE *file)
{
    return fflush(file) == 0 && !ferror(file) ? 0 : -(errno ? errno : EIO);
}

int html_write(const html_run *run, const html_run *against, FILE *file)
{
    const char *names[] = {base_name(run->name), against ? base_name(against->name) : NULL};
    errno = 0;
    fwrite(html_before, 1, html_before_bytes, file);
    int error = put_data("files", write_names, names, file);
    if (!error)
        error = put_data("run", write_summary, run->summary, file);
    if (!error && has_timeline(run))
        error = put_data("timeline-data", write_timeline, run, file);
    if (!error && against)
        error = put_data("against", write_summary, against->summary, file);
    if (error)
        return error;
    fwrite(html_behind, 1, html_behind_bytes, file);
    return end_page(file);
}

/* ---- of a job ---- */

int html_write_job(html_page *job, html_page *drawn, const void *of, FILE *file)
{
    errno = 0;
    fwrite(job_html_before, 1, job_html_before_bytes, file);
    int error = put_data("job", job, of, file);
    if (!error)
        error = put_data("drawn", drawn, of, file);
    if (error)
        return error;
    fwrite(job_html_behind, 1, job_html_behind_bytes, file);
    return end_page(file);
}

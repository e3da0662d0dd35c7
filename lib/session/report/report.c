#include "session/report/run.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "base/tuning.h"
#include "measure/machine/roofline.h"
#include "out/file.h"
#include "out/report/report.h"
#include "session/job/job.h"
#include "session/options/config.h"
#include "session/session.h"
#include "session/trace/output.h"

/* ---- a summary into the place that report_path names ---- */

/* The whole report in memory first: a full disk must not leave half a report under the good name.
 */
char *pki_report_as(pki_report_function *report, const pki_summary *summary, size_t *bytes)
{
    char *text = NULL;
    FILE *memory = open_memstream(&text, bytes);
    if (!memory)
        return NULL;
    int error = report(summary, memory);
    if (fclose(memory) != 0 || error) {
        free(text);
        return NULL;
    }
    return text;
}

static pk_status open_error(const char *path, int error)
{
    static const pki_target_hints hints = {"leave report_path empty for no report",
                                           "\"-\" for the standard error"};
    return pki_fail(pki_status_of_errno(error), "report %s: %s", path,
                    pki_target_why(path, error, &hints).text);
}

pk_status pki_report_check(const char *path)
{
    bool file = path[0] && strcmp(path, "-") != 0;
    return !file || pki_target_is_free(path) ? PK_OK : open_error(path, errno);
}

static pki_report_function *form_of(const char *path, bool json)
{
    return pki_ends_with(path, PKI_RANK_SUFFIX) ? pki_report_rank
           : json                               ? pki_report_json
                                                : pki_report_text;
}

/* path "": nowhere; "-": text on stderr. */
static pk_status pki_report_file(const pki_summary *summary, const char *path, bool json)
{
    size_t n = 0;
    if (!path[0])
        return PK_OK;
    char *text = pki_report_as(form_of(path, json), summary, &n);
    if (!text)
        return pki_fail(PK_ENOMEM, "no memory for the report");
    bool to_stderr = strcmp(path, "-") == 0;
    bool written = to_stderr ? pki_write_stderr(text, n) : pki_file_put(path, text, n);
    int error = errno;
    free(text);
    if (!written && to_stderr)
        return pki_fail(pki_status_of_errno(error), "report on stderr: %s",
                        error == EBADF ? "the program has none: descriptor 2 is closed, or a file "
                                         "of the program's own"
                                       : strerror(error));
    return written ? PK_OK : open_error(path, error);
}

static pk_status write_all(pki_session *s, const pki_summary *summary, char **line, size_t *bytes)
{
    pk_status part = pki_job_stop(s, summary);
    pk_status report = pki_report_file(summary, s->config.report, s->config.report_json);
    if (s->writing)
        *line = pki_report_as(pki_report_json_line, summary, bytes);
    if (part || report)
        return part ? part : report;
    return s->writing && !*line ? pki_fail(PK_ENOMEM, "no memory for the report in the trace")
                                : PK_OK;
}

pk_status pki_report_stop(pki_session *s, char **line, size_t *bytes)
{
    pki_summary summary;
    if (!s->writing && !s->config.report[0] && !s->config.job[0])
        return PK_OK;
    if (!pki_run_summarise(s, &summary))
        return pki_fail(PK_ENOMEM, "no memory for the report");
    pk_status status = write_all(s, &summary, line, bytes);
    pki_summary_finish(&summary);
    return status;
}

/* ---- machine and build, for the report and for captures ---- */

#define COMMAND_MOST 2000

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

pk_status pki_environment_config(pki_config *c)
{
    const char *wanted = pki_variable("PK_ENVIRONMENT");
    c->environment_off = wanted && strcmp(wanted, "0") == 0;
    if (!wanted || c->environment_off || strcmp(wanted, "1") == 0)
        return PK_OK;
    return pki_fail(PK_EINVAL, "PK_ENVIRONMENT=%.20s is neither 0 nor 1", wanted);
}

static bool fill_machine(pki_environment *out)
{
    pki_host m;
    pki_host_read(&m);
    out->memory = m.memory_bytes;
    out->processors = m.processors;
    out->cpu = strdup(m.cpu);
    out->architecture = strdup(m.architecture);
    out->kernel = strdup(m.kernel);
    out->gpu = strdup(m.gpu);
    out->driver = strdup(m.driver);
    return out->cpu && out->architecture && out->kernel && out->gpu && out->driver;
}

static bool fill_program(pki_environment *out)
{
    pki_executable e;
    char command[COMMAND_MOST];
    pki_executable_read("/proc/self/exe", &e);
    pki_arguments_read(command, sizeof command);
    out->command = strdup(command);
    out->compiler = strdup(COMPILER);
    out->program_compiler = strdup(e.compiler);
    out->build_id = strdup(e.build_id);
    return out->command && out->compiler && out->program_compiler && out->build_id;
}

static bool fill_revision(pki_environment *out)
{
    pki_revision r;
    pki_revision_read(".", &r);
    out->commit = strdup(r.commit);
    out->branch = strdup(r.branch);
    return out->commit && out->branch;
}

bool pki_environment_fill(const pki_config *c, pki_environment *out)
{
    return c->environment_off || (fill_machine(out) && fill_program(out) && fill_revision(out));
}

/* ---- the run beside what its machine can do ---- */

pk_status pki_limits_config(pki_config *c, pki_config_text peak)
{
    if (!peak.text || pki_peak_parse(peak.text, &c->peak))
        return PK_OK;
    return pki_fail(PK_EINVAL,
                    "%s: %.40s is neither fp64, fp32, tf32, bf16, fp16 or fp8, nor operations per "
                    "second, as 989.5e12, nor both, as bf16:989.5e12",
                    peak.source, peak.text);
}

/* False, and why in words. */
static bool load(const pki_config *c, pki_machine *m, char why[300])
{
    char path[PATH_MAX];
    pki_machine here;
    bool named = c->machine[0] != '\0';
    snprintf(why, 300, "the option machine is \"none\"");
    if (strcmp(c->machine, "none") == 0)
        return false;
    pki_machine_here(&here);
    snprintf(why, 300, "there is no folder for its file");
    if (!named && !pki_machine_path(here.host, path))
        return false;
    return pki_machine_load(named ? c->machine : path, named, m, why, 300);
}

/* Where the kernel says nothing: all of the machine's. */
static uint64_t allowed_processors(const pki_host *host)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return count > 0 ? (uint64_t)count : host->processors;
}

static void find_peak(const pki_config *c, const pki_machine *m, const char *why, size_t gpus,
                      pki_peak *peak)
{
    pki_host host;
    pki_host_read(&host);
    const pki_peak_place place = {.machine = m,
                                  .no_machine = why,
                                  .gpu = host.gpu,
                                  .gpus = gpus,
                                  .processors = allowed_processors(&host)};
    pki_peak_find(&c->peak, &place, peak);
}

void pki_limits_peak(const pki_config *c, size_t gpus, pki_peak *peak)
{
    pki_machine m;
    char why[300];
    bool known = load(c, &m, why);
    find_peak(c, known ? &m : NULL, why, gpus, peak);
}

bool pki_limits_fill(const pki_config *c, pki_summary *s)
{
    pki_machine m;
    pki_peak peak;
    char why[300];
    bool placed = pki_roofline_wanted(s);
    if (!placed && !s->steps.utilisation.steps)
        return true;
    bool known = load(c, &m, why), named = c->machine[0] && strcmp(c->machine, "none") != 0;
    if (!known && named)
        pki_log(PK_LOG_WARNING, "no roofline: machine_path %s: %s", c->machine, why);
    find_peak(c, known ? &m : NULL, why, s->gpu_count, &peak);
    return (!known || pki_roofline_fill(&m, s)) &&
           pki_utilisation_fill(&s->steps.utilisation, &peak);
}

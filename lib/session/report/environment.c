#include "session/report/environment.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/log.h"
#include "base/process.h"
#include "base/files.h"

#define COMMAND_MOST 2000

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

pk_status pki_environment_config(pki_config *c)
{
    const char *wanted = pki_variable("PK_ENVIRONMENT");
    c->environment_off = wanted && strcmp(wanted, "off") == 0;
    if (!wanted || c->environment_off || strcmp(wanted, "on") == 0)
        return PK_OK;
    return pki_fail(PK_EINVAL, "PK_ENVIRONMENT: %.20s is neither on nor off", wanted);
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

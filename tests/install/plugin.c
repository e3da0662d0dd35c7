/* A plug-in that is the only user of libpk.so in its process: the host closes it while perfkit is
 * at work. */
#include <pk/pk.h>

int plugin_start(const char *trace_path);
void plugin_work(void);

int plugin_start(const char *trace_path)
{
    return pk_start(pk_options(.trace_path = trace_path));
}

void plugin_work(void)
{
    for (int i = 0; i < 1000; i++) {
        PK_REGION_SCOPE_NAMED("plugin.work");
    }
}

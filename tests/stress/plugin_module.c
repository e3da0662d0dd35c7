/* plugin_module.c - what plugin.c loads and unloads: regions, a counter and names that are gone
 * then.
 */
#include <pk/pk.h>

void plugin_work(unsigned calls, int leave_open);

static pk_region work = PK_REGION_OF(PK_COMPUTE, "plugin.work");
static pk_region left_open = PK_REGION("plugin.left open");
static pk_counter level = PK_COUNTER("plugin.level", "calls");

/* So often each: the region, a variant of it, a block. */
void plugin_work(unsigned calls, int leave_open)
{
    char name[] = "plugin.on the stack";
    for (unsigned i = 0; i < calls; i++) {
        pk_region_begin(&work);
        {
            PK_REGION_SCOPE(*pk_region_variant(&work, "odd", i % 2));
        }
        {
            PK_REGION_SCOPE_NAMED("plugin.block");
        }
        pk_region_end(&work);
        pk_counter_set(&level, i);
    }
    pk_region_begin(pk_region_named(name));
    pk_region_end(pk_region_named(name));
    if (leave_open)
        pk_region_begin(&left_open);
}

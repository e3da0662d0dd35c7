#include <pk/region.h>

#include "base/compiler.h"
#include "out/chrome/chrome.h"

/* Reserved colour names of the trace viewer, one for each kind (catapult's color_scheme); other
 * viewers choose their own. `pk report` reads the kind back from it. */
const char *pki_chrome_colour(uint32_t kind)
{
    static const char *const names[] = {[PK_COMPUTE] = "thread_state_running",
                                        [PK_DATA] = "rail_load",
                                        [PK_COMM] = "rail_response",
                                        [PK_IO] = "thread_state_iowait",
                                        [PK_WAIT] = "thread_state_sleeping"};
    return kind < PKI_COUNT_OF(names) ? names[kind] : NULL;
}

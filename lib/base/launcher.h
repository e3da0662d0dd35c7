/* lib/base/launcher.h - which rank of which job this process is, as its launcher says in the
 * environment. The table of variables, with where each is documented, is in docs/launchers.md. */
#pragma once

#include "base/world.h"

/* Sets what can be told of: rank, size, local_rank, local_size, node, job. */
void pki_launcher_read(pki_world *world);

/* The tasks of a node by Slurm's list of them: "4(x2),3" has 4, 4 and 3. 0: it does not say. */
int32_t pki_launcher_tasks(const char *list, int32_t node);

/* lib/history/salvage.h - the history of a run that was killed. */
#pragma once

#include "out/salvage.h"

/* Each event of it, preceded by ",\n", all of which come before pki_salvage_events' if there is no
 * trace that has them. True where there is no history. */
bool pki_history_salvage(pki_salvage *salvage, pki_salvage_sink *sink, void *user);

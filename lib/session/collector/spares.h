/* lib/session/collector/spares.h - the collector sees to it that full rings have somewhere to go.
 *
 * A ring of 2 MiB holds 65,536 records: at 5 million a second 13 ms, and a file system may take
 * longer than that for one write, now and then. So where a thread fills its ring within 100 ms and
 * a trace or a history is kept, spare segments (core/spare.h) are made that together hold a quarter
 * of a second of what such threads record; and some where the collector finds a ring half full,
 * whatever the reason, twice what it finds at once where that is more. They are a sixteenth of the
 * arena at most (64 MiB by default), and given back to the system when none has been wanted for a
 * minute. A program that records less has none.
 */
#pragma once

#include "session/session.h"

/* Behind a round, under the drain lock: does one thing at most, which takes a millisecond or two.
 */
void pki_spares_round(pki_session *session);

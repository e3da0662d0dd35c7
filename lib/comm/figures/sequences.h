/* lib/comm/figures/sequences.h - single operations, chosen so that all their ranks choose the same.
 *
 * What a rank waited for lies in other ranks: who was late to send, to receive, to a collective. So
 * the ends of single operations have to be put side by side, and no file has room for all. An
 * operation has a key that all its ranks make alike: of a collective the communicator's number and
 * the operation's on it; of a message the communicator, sender, receiver, tag, and its number among
 * those (messages of one sender, receiver and tag do not overtake each other). It is chosen if its
 * key's lowest bits are 0; how many of them grows until there is room. What one rank chose is then
 * a part of what another one did that chose with fewer bits: rows of any two ranks can be compared,
 * and their sums scaled up.
 *
 * Numbers of messages go by the order in which they end here. Channels are counted in a table that
 * does not grow; messages of channels that find no room in it have no key.
 */
#pragma once

#include "comm/figures/figures.h"

#define PKI_SEQUENCES_MOST 1024
#define PKI_SEQUENCES_CHANNELS 4096

typedef struct pki_comm_sequences {
    uint64_t operations; /* that had a key */
    uint64_t one_in;     /* a power of two; 0: nothing yet */
    size_t count;
    pki_sequence_row *rows; /* room for PKI_SEQUENCES_MOST */
    struct pki_channel {
        uint32_t mark, messages;           /* mark: which one, 0: none */
    } channels[2][PKI_SEQUENCES_CHANNELS]; /* sent, received */
} pki_comm_sequences;

/* False: there is no memory. */
bool pki_comm_sequences_add(pki_comm_sequences *s, const pki_timed_operation *op);

/* Chooses fewer, until there are no more than `most` (> 0). In place; how many there are then. */
size_t pki_sequences_narrow(pki_sequence_row *rows, size_t count, uint64_t *one_in, size_t most);

/* lib/core/slots.h - memory for one block's distributions: 64 KiB spans of the arena, carved from the front.
 *
 * A block's spans belong to its owner (to the collector once the owner has left), so carving takes no lock. Adding a slot
 * does: the name's text goes to a place shared by all, and readers walk the table.
 */
#ifndef PKI_CORE_SLOTS_H
#define PKI_CORE_SLOTS_H

#include "core/arena.h"
#include "core/thread.h"

/* Zeroed, a multiple of 64 bytes; NULL if the arena has no room. */
void *pki_slots_take(pki_arena *arena, pki_thread *t, size_t bytes);

/* Under the registry's lock: the slot of name id in t, made if needed (of so many bytes, a pki_slot first); NULL without room. */
pki_slot *pki_slots_add(pki_arena *arena, pki_thread *t, uint32_t id, size_t bytes);

/* The bucket's counter in a slot of t, made if needed; NULL without room. */
uint32_t *pki_slots_bucket(pki_arena *arena, pki_thread *t, pki_slot *slot, uint32_t bucket);

/* One more in a bucket that is full: the carry. */
void pki_slots_carry(pki_arena *arena, pki_thread *t, pki_slot *slot, uint32_t bucket, uint32_t times);

/* Adds slot `from` (of any block) to slot `to` of block t. */
void pki_slots_merge(pki_arena *arena, pki_thread *t, pki_slot *to, const pki_slot *from);

/* Forgets all slots; their memory is used again. */
void pki_slots_reset(pki_arena *arena, pki_thread *t);

#endif

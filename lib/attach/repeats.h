/* lib/attach/repeats.h - steps of a program that says nothing of steps, from what it repeats.
 *
 * A program's operations, ranges and kernels come as symbols, in their order. A loop is known by
 * its *anchor*: a symbol that comes once a turn. Where all symbols of a turn are in inner loops
 * (six exchanges with neighbours, and six back), none does; then the anchor is the first of a run:
 * a symbol that comes after something that is not in the body of its inner loop; or a symbol right
 * after a certain other one, where it has several places in a turn. So the number of
 * turns of inner loops need not be constant, nor their order; steps may leave parts out or do
 * others in their place (neighbour lists every 20th step), and time plays no part in what is found.
 *
 * Of loops in loops the outermost that turns often enough is the step, unless it looks like what is
 * done every n-th step: output, checks, neighbour lists, an epoch. That is judged by structure (the
 * n-th step leaves out what others do), by constancy (always 10, always 100 turns) and by the share
 * of time that is in no inner turn. What turns faster than each 20 us polls, and is no step.
 *
 * The same symbols give the same loop after as many of them: ranks that do the same agree without a
 * message. One thread at a time.
 *
 * Cost: about 20 ns a symbol. The symbols are looked through when there are 64, 128, 256, ... of
 * them, at most the last 16,384 of them, which takes up to a few ms on the calling thread; 0.8 MiB,
 * and nothing is allocated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct pki_repeats pki_repeats;

/* What a loop's turns begin with: a symbol, right after `before` if there is one; of a run,
 * the first one behind something outside of the body. */
#define PKI_REPEATS_BODY 16

/* With so many a place has messages: where it has them with more they are not told apart. */
#define PKI_REPEATS_PARTS 16

typedef struct pki_repeats_symbol {
    uint32_t region;
    uint64_t site;
    uint32_t nth; /* of those with whom it has messages, from 1; 0: all */
} pki_repeats_symbol;

typedef struct pki_repeats_begin {
    pki_repeats_symbol symbol, before, body[PKI_REPEATS_BODY];
    uint32_t body_count;
    bool after, of_run;
    bool only;  /* no other symbol has its region */
    bool whole; /* else it is too long for this */
} pki_repeats_begin;

/* What was found. */
typedef struct pki_repeats_loop {
    uint32_t number;      /* of the loops that were found, from 1; 0: none */
    uint64_t turns;       /* since its first */
    uint64_t before;      /* of those, the ones before the loop was known: not told as steps */
    int64_t began, ended; /* all these turns */
    uint64_t alone;       /* its first ones that other ranks do not have: not in a turn's number */
    uint32_t region;      /* the anchor: its region... */
    bool first_of_run;    /* ...each time, or the first of several in a row */
    pki_repeats_begin begin;
    uint32_t alike;     /* percent of the turns looked at with one of the four commonest contents */
    uint32_t inner;     /* the region of the next inner loop's anchor, and... */
    double inner_turns; /* ...its turns in one of this; 0: there is none */
    uint32_t outer;     /* likewise outside: what looks like work of every n-th step */
    double outer_steps; /* steps in one of its turns; 0: there is none */
} pki_repeats_loop;

/* NULL without memory. */
pki_repeats *pki_repeats_new(void);
void pki_repeats_free(pki_repeats *r);

/* Something begins: its region, where it was called from (0: not known), a message's peer and tag
 * (0: none), when, and how many collectives of all ranks have begun before it, by which ranks
 * number turns alike. True: a turn of the loop ends here, before it. */
bool pki_repeats_feed(pki_repeats *r, uint32_t region, uint64_t site, uint64_t with, int64_t ns,
                      uint32_t met);

/* The loop that is known, or was the last. over: 0, or when the end is; where there were too few
 * symbols to be sure while they came: what they look like then, all of it before. */
pki_repeats_loop pki_repeats_told(pki_repeats *r, int64_t over);

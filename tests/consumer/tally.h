/* tally.h - what a trace has to show, counted by the program that records it.
 *
 * Each thread says what it opens and shuts, by the name that a viewer has to show: the inside of
 * a JSON string. Slices are counted by track, name, parent and depth, so that the counts are the
 * whole tree.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stdio.h>

/* The track of the calling thread. */
void tally_track(const char *shown);

/* A slice begins, or ends. One that never ends is counted by tally_leave_open. */
void tally_open(const char *shown);
void tally_shut(void);

/* So many slices at once, each inside what is open. */
void tally_many(const char *shown, unsigned count);

/* As tally_shut, for a slice that perfkit has to close itself. */
void tally_leave_open(void);

void tally_step(unsigned index, double items);
void tally_mark(const char *shown);
void tally_value(const char *counter, double value);

/* An argument of a slice of that name; the sum over all of them counts. */
void tally_argument(const char *shown, const char *key, double value);

/* All of it as one line of JSON. */
void tally_print(FILE *file);

#endif

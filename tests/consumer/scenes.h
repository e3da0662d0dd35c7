/* scenes.h - what the threads of make_trace record: everything that might trip up a reader. */
#ifndef SCENES_H
#define SCENES_H

#include <pk/pk.h>

/* A region, and its name as a viewer has to show it. */
typedef struct place {
    pk_region region;
    const char *shown;
} place;

#define PLACE(variable, kind, name, shown) place variable = {PK_REGION_OF(kind, name), shown}

void place_open(place *p);
void place_shut(place *p);

#define SCENE_THREADS 3

/* All kinds nested, and by number: names, depth, many. */
void scenes_of_thread(int number);

/* Regions of a thread that neither ends them nor ends; and that they are left open. */
void scenes_of_waiter(void);
void scenes_left_open(void);

#endif

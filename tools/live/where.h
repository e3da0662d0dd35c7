/* tools/live/where.h - what `pk where` prints. */
#pragma once

#include <stdio.h>

#include "live/behind.h"

typedef struct where {
    view *views;
    size_t count;
    behind behind;
} where;

void where_text(const where *w, FILE *to);
void where_json(const where *w, FILE *to);

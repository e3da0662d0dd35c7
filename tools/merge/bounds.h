/* tools/merge/bounds.h - how far two clocks are apart: bounds from both sides, over time.
 *
 * Each bound says that at a moment the offset is at least, or at most, so much. Two clocks drift
 * apart evenly over minutes, so all bounds of ten minutes have to fit around one straight line. The
 * offset at a moment is then between the lowest and the highest of the lines that fit: an interval
 * that is narrower than any single pair of bounds, and as hard as they are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BOUNDS_PIECES 512          /* of the time that is looked at; each keeps its tightest two */
#define BOUNDS_LINE 600000000000.0 /* ns that clocks drift evenly for */
#define BOUNDS_DRIFT 1e-3          /* more than any two clocks of machines drift apart */

typedef struct bounds_piece {
    bool has_least, has_most;
    double least, least_at, most, most_at;
} bounds_piece;

typedef struct bounds {
    double from, span; /* ns; moments outside count as the first or the last */
    uint64_t count;
    bounds_piece pieces[BOUNDS_PIECES];
} bounds;

/* Both relative to whatever keeps them exact in a double. */
void bounds_least(bounds *b, double at, double offset);
void bounds_most(bounds *b, double at, double offset);

typedef enum bounds_found { BOUNDS_BOTH, BOUNDS_OPEN, BOUNDS_BROKEN } bounds_found;

/* The interval of the offset at a moment. BOUNDS_OPEN: one side, or both, is not bounded.
 * BOUNDS_BROKEN: no line fits. */
bounds_found bounds_at(const bounds *b, double at, double *least, double *most);

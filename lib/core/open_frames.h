/* lib/core/open_frames.h - what a thread has open, seen by another one of its process. */
#pragma once

#include <stdbool.h>

#include "core/thread.h"

typedef struct pki_open_frames {
    unsigned depth;
    pki_frame open[PKI_DEPTH_MAX]; /* outermost first; ids without their flags */
} pki_open_frames;

/* Frames that were open together. False: the thread moves too fast for that. */
bool pki_open_frames_of(const pki_thread *t, pki_open_frames *look);

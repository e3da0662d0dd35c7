/* lib/backend/cuda/sample.h - spans of graphs whose replays nobody announces.
 *
 * Their events are stamped by each replay, so a replay is seen if its end stamps the last event
 * between two rounds, and the next one has not begun to stamp the others. All that is known of the
 * others is that they are missing. */
#pragma once

/* One look at every graph; gives back what belonged to those that are gone. */
void pki_cuda_sample(void);

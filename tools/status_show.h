/* tools/status_show.h - the parts of pk status, each a few lines on stdout. */
#pragma once

void show_clock(void);
void show_limits(void);
void show_world(void);
void show_backends(void);
void show_environment(void);

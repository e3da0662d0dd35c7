/* tools/status.h - pk status: what perfkit finds here, before anybody measures with it */
#pragma once

/* ---- the parts of pk status, each a few lines on stdout ---- */

void show_clock(void);
void show_limits(void);
void show_world(void);
void show_backends(void);
void show_environment(void);

/* lib/session/process.h - fork, exit, and being unloaded. */
#pragma once

/* At each pk_start, under its lock. */
void pki_process_prepare(void);

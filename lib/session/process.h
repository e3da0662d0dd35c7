/* lib/session/process.h - fork, exit, and being unloaded. */
#ifndef PKI_SESSION_PROCESS_H
#define PKI_SESSION_PROCESS_H

/* At each pk_start, under its lock. */
void pki_process_prepare(void);

#endif

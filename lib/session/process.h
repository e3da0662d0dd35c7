/* lib/session/process.h - fork, exit, and being unloaded. */
#ifndef PKI_SESSION_PROCESS_H
#define PKI_SESSION_PROCESS_H

/* Once, at the first pk_start. */
void pki_process_prepare(void);

#endif

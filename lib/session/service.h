/* lib/session/service.h - what a session does beside recording, each service behind the same table
 * of functions.
 *
 * A service is one constant pki_service beside the code that it is about; service.c has the one
 * list of them. The session goes through the list at each of the moments below, in its order, and
 * knows no service by name: so none can be forgotten at one of them. All functions are optional.
 *
 *     reset       pk_start: nothing is known of the session before. Under the control lock
 *     open        the distributions are there, the gate is still closed; not PK_OK ends the start
 *     start       the session is open, and so are its backends
 *
 *     drain       in a round, before anything is taken out of the rings       drain lock
 *     folded      in it, behind folding and before events are formatted       drain lock
 *     drained     in it, when the rings have been emptied                     drain lock
 *     round       behind each round of the collector; without a collector, in pk_flush; drain lock
 *     look        what is looked at now and then is looked at now: pk_flush, pk_stop; drain lock
 *     flush       what waits to be written is written: pk_flush               drain lock
 *     behind      behind all of that, once its cost is known                  drain lock
 *     unlocked    behind that, without a lock
 *
 *     halt        pk_stop begins: threads of its own end. Without the drain lock
 *     close       the backends have stopped: nothing is measured from here on; drain lock
 *     end         the last record is folded and counted                       drain lock
 *     wait        behind that, without the drain lock: for what it writes elsewhere
 *     summarise   its part of the report; false without memory                drain and fold lock
 *     forget      the reports are written
 *     status      then: what went wrong, with its message; PK_OK: nothing
 *
 *     abandon     the start has failed: what open has made goes
 *     after_fork  in the child, which has one thread: no state is trusted, nothing is freed
 *     spent       what it has taken of the program's own threads, ns, beside recording
 */
#pragma once

#include "session/session.h"

typedef struct pki_service {
    const char *name;
    void (*reset)(void);
    pk_status (*open)(pki_session *session);
    void (*start)(pki_session *session);
    void (*drain)(pki_session *session);
    void (*folded)(pki_session *session);
    void (*drained)(pki_session *session);
    void (*round)(pki_session *session);
    void (*look)(pki_session *session);
    void (*flush)(pki_session *session);
    void (*behind)(pki_session *session);
    void (*unlocked)(void);
    void (*halt)(pki_session *session);
    void (*close)(pki_session *session);
    void (*end)(pki_session *session);
    void (*wait)(pki_session *session);
    bool (*summarise)(const pki_session *session, pki_summary *out);
    void (*forget)(void);
    pk_status (*status)(void);
    void (*abandon)(pki_session *session);
    void (*after_fork)(void);
    uint64_t (*spent)(void);
} pki_service;

extern const pki_service *const pki_services[];
extern const size_t pki_service_count;

/* Each service in turn that has this function; its arguments in parentheses. */
#define pki_services_each(function, arguments)                                                     \
    do {                                                                                           \
        for (size_t each_ = 0; each_ < pki_service_count; each_++)                                 \
            if (pki_services[each_]->function)                                                     \
                pki_services[each_]->function arguments;                                           \
    } while (0)

pk_status pki_services_open(pki_session *session); /* until the first that fails */
pk_status pki_services_status(void);               /* of the first that has something to say */
bool pki_services_summarise(const pki_session *session, pki_summary *out);
uint64_t pki_services_spent(void);

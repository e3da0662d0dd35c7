#include "session/collector/toll.h"

#include "session/backend.h"
#include "session/service.h"

uint64_t pki_toll_begin(void)
{
    return pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void pki_toll_of_caller(pki_session *s, uint64_t since)
{
    s->toll.callers += pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - since;
}

void pki_toll_of_captures(pki_session *s, uint64_t since)
{
    s->toll.captures += pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - since;
}

void pki_toll_of_collector(pki_session *s)
{
    s->toll.collector = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

pki_toll pki_toll_now(const pki_session *s)
{
    pki_toll now = s->toll;
    now.process = pki_read_clock(CLOCK_PROCESS_CPUTIME_ID) - s->start_cpu;
    now.backends = pki_backends_cpu();
    now.readings = pki_services_spent();
    return now;
}

void pki_toll_publish(pki_session *s)
{
    s->arena->header->toll = pki_toll_now(s);
}

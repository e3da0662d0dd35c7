/* Any bytes as a file of `pk machine`: it is taken or refused with a reason; what is taken is
 * within bounds, and is read again as what it was. */
#include "measure/machine/machine.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

static void check(const pki_machine *m)
{
    must(m->limit_count >= 1 && m->limit_count <= PKI_MACHINE_LIMITS && m->processors > 0);
    must(strlen(m->host) < sizeof m->host && strlen(m->cpu) < sizeof m->cpu);
    for (size_t i = 0; i < m->limit_count; i++) {
        const pki_limit *l = &m->limits[i];
        must(l->name[0] && memchr(l->name, 0, sizeof l->name) && !strchr(l->name, '\n'));
        must(l->worst > 0 && l->worst <= l->median && l->median <= l->best);
        must(l->best <= PKI_MACHINE_RATE_MOST);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[160] = "", text[PKI_MACHINE_BYTES];
    pki_machine m, again;
    /* Of its own length: who reads behind it is found by the sanitizer. */
    char *copy = malloc(size + !size);
    must(copy != NULL);
    if (size)
        memcpy(copy, data, size);
    bool taken = pki_machine_parse(copy, size, &m, why, sizeof why);
    free(copy);
    if (!taken) {
        must(why[0] != 0);
        return 0;
    }
    check(&m);
    must(pki_machine_parse(text, pki_machine_print(&m, text), &again, why, sizeof why));
    must(memcmp(&m, &again, sizeof m) == 0);
    return 0;
}

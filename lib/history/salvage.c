#include "history/salvage.h"

#include "history/format.h"

bool pki_history_salvage(pki_salvage *s, pki_salvage_sink *sink, void *user)
{
    pki_history_view view;
    pki_history_range all = PKI_HISTORY_ALL;
    if (!pki_history_view_open(&view, s->base, s->bytes, s->header->history, s->commit.history))
        return true;
    return pki_history_format(&view, &all, &s->chrome, sink, user, &s->commit.events);
}

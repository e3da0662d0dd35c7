#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/spans.h"
#include "history/layout.h"

bool pki_history_view_open(pki_history_view *v, const void *base, size_t bytes, uint64_t offset,
                           uint64_t end)
{
    *v = (pki_history_view){.base = base, .bytes = bytes, .end = end};
    if (offset == 0 || offset % 8 || offset > bytes || sizeof *v->head > bytes - offset)
        return false;
    v->head = (const pki_history_head *)(const void *)(v->base + offset);
    size_t left = bytes - (size_t)offset - sizeof *v->head;
    return v->head->chunk_bytes >= PKI_PAGE && v->head->chunk_bytes % PKI_PAGE == 0 &&
           v->head->chunk_bytes <= bytes && v->head->step_room > 0 &&
           v->head->step_room <= left / sizeof *v->head->steps &&
           pki_load_acquire(&v->head->first) <= end; /* pairs with the release in forget */
}

const pki_history_step *pki_history_find(const pki_history_view *v, uint64_t number)
{
    uint64_t end = v->head->step_end, room = v->head->step_room;
    uint64_t first = end > room ? end - room : 0;
    for (uint64_t n = end; n > first; n--) {
        const pki_history_step *step = &v->head->steps[(n - 1) % v->head->step_room];
        if (step->number == number)
            return step;
    }
    return NULL;
}

pki_history_reader pki_history_read(const pki_history_view *v, uint64_t from)
{
    uint64_t first = pki_load_acquire(&v->head->first); /* pairs with the release in forget */
    from = PKI_MAX(from, first);
    return (pki_history_reader){v, from - from % v->head->chunk_bytes, 0};
}

/* The chunk in which the position lies. */
static const char *chunk_of(const pki_history_view *v, uint64_t at)
{
    uint64_t bytes = v->head->chunk_bytes;
    uint64_t offset = v->head->chunks[at / bytes % PKI_HISTORY_CHUNKS];
    bool there =
        offset && offset % PKI_PAGE == 0 && offset <= v->bytes && bytes <= v->bytes - offset;
    return there ? v->base + offset : NULL;
}

static bool is_whole(const pki_piece *piece, uint64_t left)
{
    return piece->bytes >= sizeof *piece && piece->bytes <= left && piece->bytes % 16 == 0;
}

const pki_piece *pki_history_next(pki_history_reader *r)
{
    uint64_t bytes = r->view->head->chunk_bytes;
    while (r->at < r->view->end && r->read < r->view->bytes) {
        const char *chunk = chunk_of(r->view, r->at);
        uint64_t within = r->at % bytes;
        const pki_piece *piece = (const pki_piece *)(const void *)(chunk + within);
        if (!chunk || piece->kind == PKI_PIECE_END || !is_whole(piece, bytes - within)) {
            r->at += bytes - within;
            r->read += sizeof *piece;
            continue;
        }
        r->at += piece->bytes;
        r->read += piece->bytes;
        return piece;
    }
    return NULL;
}

const pki_record *pki_piece_records(const pki_history_reader *r, const pki_piece *piece,
                                    uint32_t *count)
{
    uint64_t beyond = r->at > r->view->end ? r->at - r->view->end : 0;
    uint64_t bytes = piece->bytes - sizeof *piece;
    *count = (uint32_t)((bytes - PKI_MIN(beyond, bytes)) / sizeof(pki_record));
    return (const pki_record *)(const void *)(piece + 1);
}

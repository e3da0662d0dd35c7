#include "job/verdicts/stands.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/stats/evidence.h"
#include "job/verdicts/crowd.h"
#include "memory.h"

typedef struct standing {
    uint32_t host, role;
    double late;
    size_t rank;
} standing;

/* Those that are compared stand together, the latest first. */
static int by_group(const void *x, const void *y)
{
    const standing *a = x, *b = y;
    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    if (a->role != b->role)
        return a->role < b->role ? -1 : 1;
    if (a->late != b->late)
        return a->late > b->late ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* The first of them among the others. */
static bool is_outlier(const standing *standings, size_t count, double level)
{
    double sum = 0, squares = 0, others = (double)(count - 1);
    for (size_t i = 1; i < count; i++)
        sum += standings[i].late;
    for (size_t i = 1; i < count; i++)
        squares += (standings[i].late - sum / others) * (standings[i].late - sum / others);
    double error = sqrt(squares / (others - 1) * (1 + 1 / others));
    double distance = standings[0].late - sum / others;
    return distance > -pki_t_quantile(level, others - 1) * error;
}

static void judge_group(const standing *standings, size_t count, double level, bool *stands)
{
    for (size_t i = 0; i + 3 <= count; i++) {
        const standing *s = &standings[i];
        if (!(s->late >= log(JOB_STANDS_OUT)) && !is_outlier(s, count - i, level))
            break;
        stands[s->rank] = true;
    }
}

static size_t crowded_standings(const job *j, const uint32_t *roles, const double *late,
                                standing *standings)
{
    size_t count = 0;
    bool *crowded = memory_zeroed(j->hosts.count + 1, sizeof *crowded);
    for (size_t r = 0; r < j->rank_count; r++)
        crowded[j->ranks[r].host] |= job_is_crowded(j, r);
    for (size_t r = 0; r < j->rank_count; r++)
        if (crowded[j->ranks[r].host] && !isnan(late[r]))
            standings[count++] = (standing){j->ranks[r].host, roles[r], late[r], r};
    free(crowded);
    return count;
}

static double level_of(const standing *standings, size_t count, const bool *determined,
                       double level)
{
    for (size_t i = 0; i < count; i++)
        if (!determined[standings[i].rank])
            return level;
    return PKI_MAX(level, JOB_STANDS_DETERMINED);
}

bool *job_stand_out(const job *j, const uint32_t *roles, const bool *determined, const double *late,
                    double level)
{
    bool *stands = memory_zeroed(j->rank_count, sizeof *stands);
    standing *standings = memory_zeroed(j->rank_count, sizeof *standings);
    size_t count = crowded_standings(j, roles, late, standings);
    for (size_t r = 0; r < j->rank_count; r++)
        stands[r] = true;
    if (count)
        qsort(standings, count, sizeof *standings, by_group);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && standings[i + n].host == standings[i].host &&
                    standings[i + n].role == standings[i].role;)
            n++;
        for (size_t k = 0; n >= 3 && k < n; k++)
            stands[standings[i + k].rank] = false;
        judge_group(standings + i, n, level_of(standings + i, n, determined, level), stands);
    }
    free(standings);
    return stands;
}

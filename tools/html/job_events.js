/* job_events.js - what sampled calls of all ranks counted, and that of another job beside it. */

const RANK_EVENTS = [['ipc', 'IPC'], ['cache_misses_per_1000', 'Cache misses'], ['branch_misses_per_1000', 'Branch misses'], ['instructions', 'Instructions'],
    ['processor_time', 'On a processor'], ...SLOT_SHARES];
const SHARES = new Set(SLOT_SHARES.map(([key]) => key)), MORE_IS_BETTER = new Set(['ipc', 'retiring']);
const rankEventFormat = (key) => (key === 'processor_time' ? time : SHARES.has(key) ? percent : (value) => amount(value, ''));

function rankEventCell(key, value, error) {
    const shown = sampleError(error, value, SHARES.has(key));
    return [rankEventFormat(key)(value), shown && el('span', { class: 'meta' }, shown)];
}

function jobEventSection(job, one) {
    if (!job.events?.length) return;
    const rows = job.events.flatMap((row) => RANK_EVENTS.filter(([key]) => row[key]).map(([key, name], i) => {
        const { value, error, by_rank: by } = row[key], format = rankEventFormat(key);
        return [i ? '' : row.region, i ? '' : percent(row.sampled / row.calls), name, rankEventCell(key, value, error), ...spreadCells(by, one, format)];
    }));
    section('events', 'Events a call', 'Of sampled calls of all ranks. Misses: in 1\u202f000 instructions. ±: 95\u202f% of samples would be as near.',
        card(null, null, foldedTable(['Region', 'Sampled', 'Figure', 'All ranks', ...SPREAD_HEADS], rows)));
}

function againstEvents(against) {
    if (!against.events?.length) return null;
    const names = new Map(RANK_EVENTS);
    const rows = against.events.map((row) => {
        const worse = (row.change === 'less') === MORE_IS_BETTER.has(row.figure);
        return [row.region, names.get(row.figure), rankEventCell(row.figure, row.before, row.before_error), rankEventCell(row.figure, row.now, row.now_error),
            row.change === 'cannot tell' ? 'within the errors' : el('span', { class: worse ? 'less' : '' }, changed(row.now / row.before))];
    });
    return card('Events a call', 'Misses: in 1\u202f000 instructions. A change is told where it is beyond the errors of both samples.',
        foldedTable(['Region', 'Figure', 'Before', 'Now', 'Change'], rows));
}

/* job_mpi.js - MPI over the ranks, and what they waited for in others: what is known without steps, too. */

const WAITS = [['late_sender', 'Late sender', 'a receive, for its message'], ['late_receiver', 'Late receiver', 'a send, for who receives'],
    ['wait_nxn', 'Wait at N × N', 'an operation of all with all, for the last one'], ['wait_barrier', 'Wait at barrier', 'a barrier, for the last one'],
    ['late_broadcast', 'Late broadcast', 'a broadcast or scatter, for its root'], ['early_reduce', 'Early reduce', 'the root of a reduction, for the first of the others'],
    ['caused', 'For a rank, by all others', '']];

/* Over all ranks and states; null: not known. */
function waitedForOthers(job) {
    return !job.waits || job.waits.not_known ? null : WAITS.reduce((sum, [key]) => sum + (key === 'caused' ? 0 : job.waits[key].time), 0);
}

function mpiSection(job, one) {
    const { mpi } = job;
    if (!mpi) return;
    const { share } = mpi, node = section('mpi', 'MPI', [`${percent(mpi.of_run)} of the ranks’ time: ${percent(share.min)} of the rank with least of it, `
        + `${percent(share.max)} of `, one.button(share.max_rank), '.'],
    card('By call', null, foldedTable(['Call', 'Calls', 'Time of all ranks', 'Of MPI', 'Most', 'By'], mpi.calls.map((row) =>
        [row.name, count(row.calls), time(row.time.mean * row.time.ranks), percent(row.of_mpi), time(row.time.max), one.button(row.time.max_rank)]))));
    if (mpi.sites.length) {
        node.append(card('Where in the program', 'The region around the call, of all ranks.', foldedTable(['Region', 'Operation', 'Calls', 'Bytes', 'Time'],
            mpi.sites.map((row) => [row.region || '(outside regions)', row.operation, count(row.calls), amount(row.bytes, 'bytes'), time(row.time)]))));
    }
}

function waitsSection(job, one) {
    const { waits } = job;
    if (!waits || waits.not_known) return;
    const rows = WAITS.filter(([key]) => waits[key].time > 0).map(([key, name, what]) =>
        [[name, what && el('span', { class: 'meta' }, ` ${what}`)], time(waits[key].time), one.button(waits[key].most_rank)]);
    if (!rows.length) return;
    section('waits', 'Waiting for others', `From ${count(waits.messages)} messages and ${count(waits.collectives)} collectives side by side; waits of `
        + `${time(waits.doubt)} and less are not told from clocks. Each moment of a rank counts once.`,
    card(null, null, table(['State', 'All ranks', 'Most of it'], rows)));
}

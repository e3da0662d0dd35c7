/* tools/html/job.js - the page of a job: ranks and figures in tables, and all parts in order. */

/* ---- ranks beside each other: by how much each is late, the latest first ---- */

const LATE_FROM = 0.03, RANKS_SHOWN = 12, RANKS_MOST = 200;

function whisker(rank, verdict, most) {
    const share = (value) => `${100 * Math.max(0, Math.min(1, value / most))}%`;
    const inside = el('i', { class: verdict ? 'late' : '' });
    inside.style.width = share(rank.late);
    const range = verdict && el('i', { class: 'range' });
    if (range) {
        range.style.left = share(verdict.late_low);
        range.style.width = share(verdict.late_high - Math.max(0, verdict.late_low));
    }
    return el('span', { class: 'whisker', 'aria-hidden': 'true' }, inside, range);
}

function lateRow(rank, one, most) {
    const verdict = one.accused.get(rank.rank);
    return [one.button(rank.rank), signed(percent(rank.late), rank.late), whisker(rank, verdict, most),
        verdict ? `${percent(verdict.late_low)} to ${percent(verdict.late_high)}` : DASH,
        verdict ? time(verdict.cost) : DASH, verdict?.stage ?? DASH, rank.host];
}

function lateList(ranks, one) {
    const host = el('div', { id: 'late' }), highest = [...one.accused.values()].map((v) => v.late_high);
    const most = Math.max(LATE_FROM, ranks[0].late, ...highest);
    const show = (limit) => {
        const shown = ranks.slice(0, limit);
        host.replaceChildren(table(['Rank', 'Late', ['', 'words'], 'Surely', 'Costs the job per step', ['Stage', 'words'], 'Host'],
            shown.map((rank) => lateRow(rank, one, most))));
        const next = Math.min(ranks.length, RANKS_MOST);
        if (shown.length < next) host.append(el('button', { type: 'button', onclick: () => show(next) }, `Show ${next < ranks.length ? 'the first' : 'all'} ${count(next)}`));
    };
    show(RANKS_SHOWN);
    return host;
}

function ranksChart(host, ranks, one) {
    const few = ranks.length <= 64, late = ranks.map((rank) => rank.late);
    const chart = new Chart(host, {
        id: 'chart-ranks', title: 'By how much ranks are late', note: 'In order, the latest first. Enter shows the rank.', height: 220,
        x: { ticks: plainTicks, range: (u, min, max) => [Math.min(1, min), max], axis: whole },
        y: { ticks: percentTicks, range: (u, min, max) => [Math.min(-0.01, 1.1 * min), 1.1 * Math.max(LATE_FROM, max)] },
        lines: [{ name: 'late', colour: 'main', points: few }],
        data: [ranks.map((_, i) => i + 1), late],
        marks: [{ y: LATE_FROM, text: `late from ${percent(LATE_FROM)} on`, colour: 'against' }],
        rings: ranks.flatMap((rank, i) => (one.accused.has(rank.rank) ? [{ x: i + 1, y: rank.late }] : [])),
        legend: one.accused.size ? [{ name: 'called late', colour: 'data', shape: 'ring' }] : [],
        tip: (i) => ({ title: `Rank ${ranks[i].rank}`, rows: [['late', lateWords(ranks[i], one.accused.get(ranks[i].rank))], ['host', ranks[i].host]] }),
        table: { head: ['Place', 'Rank', 'Late', 'Host'], row: (i) => [String(i + 1), String(ranks[i].rank), signed(percent(late[i]), late[i]), ranks[i].host] },
    });
    chart.area.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' && chart.at != null) one.open(ranks[chart.at].rank);
    });
}

function ranksSection(job, drawn, one) {
    const ranks = job.ranks.filter((rank) => rank.late != null).toSorted((a, b) => b.late - a.late || a.rank - b.rank);
    const left = job.job.ranks - job.ranks.length;
    const node = section('ranks', 'Ranks beside each other', ranks.length
        ? 'The median over the blocks of steps of: own time for the same work, against the median of the ranks with the same stages.'
        : 'Nobody could be judged: the verdicts say why.');
    if (!ranks.length) return;
    const host = card(null, left > 0 ? `The ${count(job.ranks.length)} latest ranks; ${count(left)} others are not on this page.` : null);
    node.append(host);
    if (ranks.length > 1) ranksChart(host, ranks, one);
    host.append(lateList(ranks, one));
}

/* ---- what of a job is best read as a table ---- */

/* The frontier, efficiency, stages, regions, communication. */

const ROWS_SHOWN = 15, ACCEPTABLE = 0.8;

function grouped(rows, groupOf) {
    return !groupOf ? rows : rows.flatMap((row, i) => (i === 0 || groupOf(i) !== groupOf(i - 1) ? [groupOf(i), row] : [row]));
}

/* All rows at a press; what the page itself lacks is said. groupOf: what a row is of, if that stands above the rows of each. */
function foldedTable(heads, rows, total, groupOf) {
    const host = el('div'), left = (total ?? rows.length) - rows.length;
    const show = (limit) => {
        host.replaceChildren(table(heads, grouped(rows.slice(0, limit), groupOf), left > 0 ? `The first ${count(rows.length)} of ${count(total)}.` : null));
        if (limit < rows.length) host.append(el('button', { type: 'button', onclick: () => show(rows.length) }, `Show all ${count(rows.length)}`));
    };
    show(ROWS_SHOWN);
    return host;
}

/* ---- the frontier ---- */

function frontierSection(job, one) {
    if (!job.frontier) return;
    const { steps, exposed, increments } = job.frontier, most = Math.max(...increments.map((row) => row.time), 1);
    const rows = increments.map((row) => [[swatch(row.kind), row.stage], time(row.time / steps), [bar(row.time / most, row.kind)],
        percent(row.time / exposed), ...row.cause ? [['for ', one.button(row.cause.rank)], `in ${row.cause.stage}`]
            : [row.time > 0 ? one.button(row.rank) : DASH, row.time > 0 ? percent(row.of_rank / row.time) : DASH]]);
    section('frontier', 'What the steps wait for', 'What each stage adds to the job’s step beyond what some rank is at anyway, and the rank that adds most of it.',
        card(null, `The increments add up to the exposed step, ${time(exposed / steps)}.`,
            table(['Stage', 'Adds per step', ['', 'words'], 'Of the step', 'Most of it by', 'How much'], rows)));
}

/* ---- before and after ---- */

function scalingFacts(against, ranks) {
    const { sort, efficiency, speedup } = against.scaling ?? {};
    return sort && facts([['Ranks', `${count(ranks)} instead of ${count(against.ranks)}`], ['Work per second', `${speedup.toFixed(2)} ×`],
        [`${sort === 'strong' ? 'Strong' : 'Weak'} scaling efficiency`, percent(efficiency)]]);
}

function changed(ratio) {
    return known(ratio) ? `${ratio < 1 ? '−' : '+'}${percent(Math.abs(ratio - 1))}` : '?';
}

function againstSection(job, one) {
    const { against } = job;
    if (!against) return;
    const what = (row) => (row.of === 'rank' ? one.button(row.rank) : row.of === 'step' ? 'The job’s step' : [swatch(row.kind), row.stage]);
    const rows = against.rows.map((row) => [what(row), row.step_kind || DASH, time(row.before), time(row.now), changed(row.ratio),
        `${changed(row.ratio_low)} to ${changed(row.ratio_high)}`, el('span', { class: row.change === 'slower' ? 'less' : '' }, row.change)]);
    const rules = against.short ? `Processors were short: there was none for ${percent(against.without_processor)} of the time in this run, and for `
        + `${percent(against.without_processor_before)} in the other. What differs may be that alone, so nothing is called slower or faster.`
        : `Slower is what is beyond +${percent(against.margin)}, beyond chance, and beyond what two runs of one program may differ by; the probability of `
        + 'one wrong verdict among all is 5 %. Of the ranks, those that changed.';
    section('against', 'Before and after', `Per step, beside ${against.path}. ${rules}`,
    card(null, null, rows.length ? foldedTable(['What', 'Kind of step', 'Before', 'Now', 'Change', 'Interval', 'Verdict'], rows)
        : el('p', null, 'Nothing to compare: no stage is in both, or there are too few steps.'), scalingFacts(against, job.job.ranks)),
    againstEvents(against) ?? '');
}

/* ---- efficiency ---- */

function efficiencyNode(name, value, formula, children) {
    const low = known(value) && value < ACCEPTABLE;
    return el('li', null, el('p', null, el('span', null, name), el('b', { class: low ? 'less' : '' }, known(value) ? percent(value) : 'not known'),
        known(value) && bar(value, low ? 'against' : 'main'), el('span', { class: 'meta' }, formula)), children?.length ? el('ul', null, children) : null);
}

function efficiencySection(job, one) {
    const e = job.efficiency;
    if (!e) return;
    const network = e.no_transfer ? [efficiencyNode('Serialisation and transfer', null, e.no_transfer)]
        : [efficiencyNode('Serialisation efficiency', e.serialisation, 'max(useful) / runtime on an ideal network'),
            efficiencyNode('Transfer efficiency', e.transfer, 'runtime on an ideal network / runtime')];
    const tree = efficiencyNode('Parallel efficiency', e.parallel, 'load balance × communication efficiency', [
        efficiencyNode('Load balance', e.load_balance, 'mean(useful) / max(useful)'),
        efficiencyNode('Communication efficiency', e.communication, 'max(useful) / runtime', network)]);
    section('efficiency', 'Efficiency', 'As the POP centre defines it (co-design.pop-coe.eu/metrics); from 80 % on it is acceptable. '
        + 'Useful is a rank’s time without the stages of the kinds comm and wait.',
    card(null, null, el('ul', { class: 'tree' }, tree), facts([['Runtime', time(e.runtime)], ['Useful, mean', time(e.useful_mean)],
        ['Useful, maximum', [time(e.useful_max), ', ', one.button(e.useful_max_rank)]],
        ['Waited at least', known(e.least_waits) ? `${time(e.least_waits)}, which an ideal network would not take` : '']])));
}

/* ---- stages and regions ---- */

const SPREAD_HEADS = ['Ranks', 'Minimum', 'Mean', 'Maximum', 'By', 'Imbalance'];

function spreadCells(spread, one, format = time) {
    return [count(spread.ranks), ...(spread.ranks ? [format(spread.min), format(spread.mean), format(spread.max), one.button(spread.max_rank),
        percent(spread.imbalance)] : [DASH, DASH, DASH, DASH, DASH])];
}

function imbalanceSection(job, drawn, one) {
    if (!job.stages.length && !job.regions.length) return;
    const kinds = new Set(job.stages.map((row) => row.step_kind)), { totals } = drawn;
    const node = section('imbalance', 'Stages and regions', 'Imbalance is maximum / mean over all ranks − 1; mean here is over those that have it.');
    for (const kind of kinds) {
        const rows = job.stages.filter((row) => row.step_kind === kind);
        node.append(card(kind ? `Stages of steps of the kind ${kind}, per step` : 'Stages, per step', null,
            foldedTable(['Stage', ...SPREAD_HEADS], rows.map((row) => [[swatch(row.kind), row.stage], ...spreadCells(row.per_step, one)]))));
    }
    if (totals.loops > 8) node.append(el('p', { class: 'note' }, `The first 8 of ${count(totals.loops)} kinds of steps.`));
    if (job.regions.length) {
        node.append(card('Regions, self time of the run', null, foldedTable(['Region', ...SPREAD_HEADS, 'Calls', 'Call, p50', 'p99'],
            job.regions.map((row) => [[swatch(row.kind), row.name], ...spreadCells(row.self, one), count(row.time.count), time(row.time.p50), time(row.time.p99)]),
            totals.regions)));
    }
}

/* ---- communication ---- */

function communicatorName(job, index) {
    const comm = job.communicators[index];
    return comm ? `${comm.library} ${comm.name}` : DASH;
}

function jobCommSection(job, drawn, one) {
    if (!job.communicators.length) return;
    const { totals } = drawn;
    const node = section('communication', 'Communication', null, card('Communicators: how long ranks waited', null,
        foldedTable(['Communicator', 'Calls', 'Bytes', ...SPREAD_HEADS], job.communicators.map((row, i) =>
            [communicatorName(job, i), count(row.calls), amount(row.bytes, 'bytes'), ...spreadCells(row.waited, one)]), totals.communicators)));
    if (job.operations.length) {
        const rows = job.operations.toSorted((a, b) => a.communicator - b.communicator);
        const heads = ['Operation', 'Size', 'Calls', ...SPREAD_HEADS, 'Bus bandwidth', 'Lowest at'];
        node.append(card('Operations: time of a call, mean of each rank', null, foldedTable(heads,
            rows.map((row) => [row.operation, amount(row.size, 'bytes'), count(row.calls),
                ...spreadCells(row.time, one), row.busbw ? rate(row.busbw.mean, 'B/s') : DASH,
                row.slowest_rank == null ? DASH : one.button(row.slowest_rank)]), totals.operations, (i) => communicatorName(job, rows[i].communicator))));
    }
    if (job.arrivals.length) {
        node.append(card('Who comes last', null, foldedTable(['Operation', 'Sequence', 'Communicator', 'Ranks', 'Apart', 'Last'],
            job.arrivals.map((row) => [row.operation, String(row.sequence), communicatorName(job, row.communicator), count(row.ranks),
                time(row.spread), one.button(row.last_rank)]))));
    }
}

/* ---- what ranks cost beside time ---- */

const JOB_COSTS = [['mfu', 'MFU', percent], ['hfu', 'HFU', percent], ['joules', 'Energy', (v) => amount(v, 'J')],
    ...[['read', 'Read by calls'], ['written', 'Written by calls'], ['device_read', 'Read of devices'], ['device_written', 'Written for devices'],
        ['resident', 'Memory at most'], ['device_memory', 'Device memory at most'],
        ['device_taken', 'Taken of devices at most']].map(([key, name]) => [key, name, (v) => amount(v, 'bytes')])];

function jobCostSection(job, one) {
    const rows = JOB_COSTS.filter(([key]) => job.costs?.[key]).map(([key, name, format]) => {
        const { job: whole, by_rank: by } = job.costs[key];
        return [name, format(whole), ...spreadCells(by, one, format)];
    });
    if (!rows.length) return;
    section('costs', 'What it cost', 'Beside time; only what was measured is shown. Ranks of a host share its processors’ energy, which counts once.',
        card(null, null, table(['', 'The job', ...SPREAD_HEADS], rows)));
}

/* ---- MPI over the ranks, and what they waited for in others ---- */

/* What is known without steps, too. */

const WAITS = [['late_sender', 'Late sender', 'a receive, for its message'], ['late_receiver', 'Late receiver', 'a send, for who receives'],
    ['wait_nxn', 'Wait at N × N', 'an operation of all with all, for the last one'], ['wait_barrier', 'Wait at barrier', 'a barrier, for the last one'],
    ['late_broadcast', 'Late broadcast', 'a broadcast or scatter, for its root'], ['early_reduce', 'Early reduce', 'the root of a reduction, for the first of the others'],
    ['unknown', 'Not known for whom', 'a collective’s request, after the last one: transfer, or a rank that makes no progress'],
    ['caused', 'For a rank, by all others', '']];

/* Over all ranks and states; null: not known. */
function waitedForOthers(job) {
    return !job.waits || job.waits.not_known ? null : WAITS.reduce((sum, [key]) => sum + (['caused', 'unknown'].includes(key) ? 0 : job.waits[key].time), 0);
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
    const rows = WAITS.filter(([key]) => waits[key]?.time > 0).map(([key, name, what]) =>
        [[name, what && el('span', { class: 'meta' }, ` ${what}`)], time(waits[key].time), one.button(waits[key].most_rank)]);
    if (!rows.length) return;
    section('waits', 'Waiting for others', `From ${count(waits.messages)} messages and ${count(waits.collectives)} collectives side by side; waits of `
        + `${time(waits.doubt)} and less are not told from clocks. Each moment of a rank counts once.`,
    card(null, null, table(['State', 'All ranks', 'Most of it'], rows)),
    waits.sites?.length ? card('Where in the program', 'The region and the call of who waits, and of whom for; of each side the rank with most of it.',
        foldedTable(['State', 'All ranks', 'In', 'By', 'For', 'Of'], waits.sites.map((row) => [WAITS.find(([key]) => key === row.state)[1], time(row.time),
            ...[row.in, row.for].flatMap((side) => [`${side.region || '(outside regions)'}: ${side.operation}`, one.button(side.most_rank)])]))) : null);
}

/* ---- what sampled calls of all ranks counted, and that of another job beside it ---- */

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

/* ---- the page of a job: its data, and its parts in order ---- */

function jobHead(job, drawn) {
    const { program, world_size: world, ranks, hosts, files } = job.job, name = (program || 'A job').split('/').pop(), out = [];
    document.title = `${name} – perfkit job`;
    if (job.frontier) {
        out.push(tile(time(job.frontier.exposed / job.frontier.steps), 'step of the job, mean'), tile(count(job.frontier.steps), 'steps'));
    }
    if (job.efficiency) out.push(tile(percent(job.efficiency.parallel), 'parallel efficiency'), tile(percent(job.efficiency.load_balance), 'load balance'));
    out.push(tile(drawn.totals.judged ? count(drawn.totals.late) : 'not judged', 'late ranks'));
    if (job.mpi && !job.frontier) {
        const waited = waitedForOthers(job);
        out.push(tile(percent(job.mpi.of_run), 'of the time in MPI'));
        if (waited != null) out.push(tile(time(waited), 'waited for others, all ranks'));
    }
    document.getElementById('head').append(el('h1', null, name), el('p', { class: 'meta' },
        `${count(ranks)} of ${count(world)} ranks on ${count(hosts)} ${hosts === 1 ? 'host' : 'hosts'}, from ${count(files)} ${files === 1 ? 'file' : 'files'}`),
    el('div', { class: 'tiles' }, out));
}

function filesSection(job, drawn) {
    const { notes } = job.job, left = drawn.totals.notes - notes.length;
    if (!notes.length) return;
    section('files', 'Files that are not in it', null, card(null, null, el('ul', null, notes.map((note) => el('li', null, note))),
        left > 0 && el('p', { class: 'note' }, `${count(left)} more are not on this page.`)));
}

function buildJob() {
    const [job, drawn] = ['job', 'drawn'].map((id) => JSON.parse(document.getElementById(id).textContent));
    const one = new JobRank(job, drawn);
    jobHead(job, drawn);
    verdicts({ verdicts: drawn.said });
    againstSection(job, one);
    heatSection(job, drawn, one);
    ranksSection(job, drawn, one);
    frontierSection(job, one);
    efficiencySection(job, one);
    imbalanceSection(job, drawn, one);
    mpiSection(job, one);
    waitsSection(job, one);
    matrixSection(job, drawn);
    jobCommSection(job, drawn, one);
    jobCostSection(job, one);
    jobEventSection(job, one);
    one.place();
    filesSection(job, drawn);
    document.documentElement.dataset.ready = 'yes';
}

buildJob();

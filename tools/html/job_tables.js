/* job_tables.js - what of a job is best read as a table: the frontier, efficiency, stages, regions,
 * communication. */

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
        percent(row.time / exposed), row.time > 0 ? one.button(row.rank) : DASH, row.time > 0 ? percent(row.of_rank / row.time) : DASH]);
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

/* steps.js - the training loop: how long each step took, what of, and why the slow ones did. */

function stepName(row) {
    return row.steps > 1 ? `Steps ${row.index}–${row.index + row.steps - 1}` : `Step ${row.index}`;
}

function median(row) {
    return row.median || row.duration / row.steps;
}

function bucketed(series) {
    const most = Math.max(...series.map((row) => row.steps));
    return most > 1 ? `Each point stands for ${most} steps: their median, and from the shortest to the longest.` : null;
}

/* The slowest steady steps, as far as they are out of the ordinary. */
function outliers(steps) {
    return steps.slowest.filter((step) => step.duration > 1.25 * steps.steady.p50);
}

/* Unless it is nearly all there is. */
function usualRange(dist) {
    const apart = dist.p99 - dist.min || dist.p99 * 0.02;
    return dist.max > dist.p99 + apart || dist.min > 0.4 * dist.p99 ? [Math.max(0, dist.min - 0.3 * apart), dist.p99 + 0.5 * apart] : null;
}

function stepTimes(report, node) {
    const { steps } = report, { series } = steps;
    const merged = series.some((row) => row.steps > 1);
    const slow = new Map(outliers(steps).map((step) => [step.index, step]));
    const first = series[0].index, x = series.map((row) => row.index);
    const rings = [...slow.values()].map((step) => {
        const row = series.findLast((entry) => entry.index <= step.index);
        return { x: row.index, y: step.duration };
    });
    const top = 1.15 * Math.max(steps.steady.max, steps.steady.p50);
    new Chart(node, {
        id: 'chart-steps', title: 'Step time', note: bucketed(series), height: 300,
        x: { ticks: eachTick(count), axis: whole },
        y: { ticks: timeTicks, range: () => [0, top] },
        lines: [
            ...(merged ? [{ name: 'longest', colour: 'main', fill: 'band', width: 0 },
                { name: 'shortest', colour: 'main', fill: 'surface', width: 0 }] : []),
            { name: 'median', colour: 'main', points: series.length < 80 },
        ],
        data: [x, ...(merged ? [series.map((row) => row.longest), series.map((row) => row.shortest ?? 0)] : []), series.map(median)],
        spans: steps.warmup ? [{ from: first - 0.5, to: first + steps.warmup }] : [],
        fit: usualRange(steps.steady),
        marks: [{ y: steps.steady.p50, text: `p50 ${time(steps.steady.p50)}`, below: true },
            { y: steps.steady.p99, text: `p99 ${time(steps.steady.p99)}` }],
        rings,
        above: series.map((row) => ({ x: row.index, y: row.longest })), aboveWhat: merged ? 'point' : 'step',
        legend: [
            { colour: 'main', shape: 'line', name: merged ? 'median' : 'step' },
            ...(merged ? [{ colour: 'band', name: 'shortest to longest' }] : []),
            ...(steps.warmup ? [{ colour: 'idle', name: `warm-up, ${count(steps.warmup)} ${steps.warmup === 1 ? 'step' : 'steps'}, in no figure.` }] : []),
            ...(rings.length ? [{ colour: 'data', shape: 'ring', name: `slowest, ${rings.length} above 1.25 × the median` }] : []),
        ],
        tip: (i) => {
            const row = series[i], found = [...slow.values()].filter((s) => s.index >= row.index && s.index < row.index + row.steps);
            return { title: stepName(row) + (row.index - first < steps.warmup ? ', warm-up' : ''), rows: [
                [merged ? 'median' : 'took', time(median(row)), 'main', 'line'],
                ...(merged ? [['shortest', time(row.shortest)], ['longest', time(row.longest)]] : []),
                ...found.flatMap((s) => s.parts.slice(0, 3).map((part) => [part.name, signed(time(part.self - part.usual), part.self - part.usual), part.kind])),
            ] };
        },
        table: { head: ['Step', 'Steps', 'Median', 'Shortest', 'Longest', 'Items'], row: (i) => {
            const row = series[i];
            return [row.index, row.steps, time(median(row)), time(row.shortest || row.duration), time(row.longest), count(row.items)];
        } },
    });
}

function present(steps) {
    return KINDS.filter((kind) => steps.kinds[kind] > 0 || steps.series.some((row) => row.kinds[kind] > 0));
}

function stepKinds(report, node) {
    const { steps } = report, { series } = steps, kinds = present(steps);
    const x = series.map((row) => row.index), sums = series.map(() => 0), layers = [];
    for (const kind of kinds) {
        layers.push(series.map((row, i) => (sums[i] += row.kinds[kind] / row.steps)));
    }
    const last = series.at(-1);
    x.push(last.index + last.steps);
    layers.forEach((layer) => layer.push(layer.at(-1)));
    const highest = Math.max(...sums.filter((_, i) => series[i].index - series[0].index >= steps.warmup), steps.steady.p50);
    const top = 1.08 * (highest < 3 * steps.steady.p50 ? highest : Math.max(steps.steady.p99, steps.steady.p50));
    const all = 1.08 * Math.max(...sums);
    new Chart(node, {
        id: 'chart-kinds', title: 'What each step went to', height: 300,
        note: 'On the thread that makes the steps, by the kind of its regions' + (last.index - series[0].index >= 4096 ? '; the mean of the steps that a column stands for.' : '.'),
        x: { ticks: eachTick(count), axis: whole },
        y: { ticks: timeTicks, range: () => [0, Math.max(all, top)] },
        fit: all > top ? [0, top] : null, fitted: true,
        above: series.map((row, i) => ({ x: row.index + row.steps / 2, y: sums[i] })), aboveWhat: last.steps > 1 ? 'column' : 'step',
        lines: kinds.map((kind) => ({ name: kind, colour: kind, fill: kind, width: 0, stepped: true })).reverse(),
        data: [x, ...layers.reverse()],
        legend: kinds.toReversed().map((kind) => ({ colour: kind, name: kind })),
        tip: (i) => series[i] && ({ title: stepName(series[i]), rows: kinds.filter((kind) => series[i].kinds[kind]).reverse()
            .map((kind) => [kind, `${time(series[i].kinds[kind] / series[i].steps)} · ${percent(series[i].kinds[kind] / series[i].duration)}`, kind]) }),
        table: { head: ['Step', ...kinds], rows: series.length,
            row: (i) => [series[i].index, ...kinds.map((kind) => time(series[i].kinds[kind] / series[i].steps))] },
    });
}

function kindShares(steps) {
    const total = stepsTotal(steps), counted = steps.broken_down || 1;
    const kinds = present(steps).toSorted((a, b) => steps.kinds[b] - steps.kinds[a]);
    return card('Where the steady steps’ time went', null, table(['Kind', 'Per step', 'Share'], kinds.map((kind) => [
        [swatch(kind), kind], time(steps.kinds[kind] / counted),
        [percent(steps.kinds[kind] / total), bar(steps.kinds[kind] / total, kind)]])));
}

function slowSteps(steps) {
    const usual = steps.steady.p50, slow = steps.slowest.filter((step) => step.duration > 1.1 * usual);
    if (!slow.length) return null;
    return card('The slowest steps, and what was longer in them than usual', null,
        table([['Step', 'tight'], 'Took', 'Usual', ['Longer than usual', 'words']], slow.map((step) => [
            count(step.index), time(step.duration), `${(step.duration / usual).toFixed(2)} ×`,
            step.parts.slice(0, 4).map((part) => el('span', { class: 'part' }, swatch(part.kind), `${part.name} `,
                el('b', null, signed(time(part.self - part.usual), part.self - part.usual))))])));
}

/* Steps announced as different, and what lies between steps. */
function otherSteps(report) {
    const { step_kinds: kinds = [], between } = report.steps;
    const rows = [...kinds, ...(between ? [{ ...between, name: 'between steps' }] : [])];
    if (!rows.length) return null;
    return card('In none of these figures', null,
        table(['', 'Count', 'p50', 'Longest', 'In all', 'Of the run'], rows.map((row) => [
            row.name, count(row.time.count), time(row.time.p50), time(row.time.max), time(row.time.sum),
            percent(row.time.sum / report.run.wall)])));
}

/* A run without steps: the time of its main thread, or of the busiest where that one has no regions. */
function wholeRun(report) {
    const { whole_run: run } = report;
    const kinds = KINDS.filter((kind) => run.kinds[kind] > 0).toSorted((a, b) => run.kinds[b] - run.kinds[a]);
    section('steps', 'Whole run, without steps', null).append(
        card(`Where the time of its ${run.busiest ? 'busiest' : 'main'} thread went`, run.thread, table(['Kind', 'In all', 'Share'], kinds.map((kind) => [
            [swatch(kind), kind], time(run.kinds[kind]), [percent(run.kinds[kind] / run.time), bar(run.kinds[kind] / run.time, kind)]]))));
}

function stepSection(report) {
    const { steps } = report;
    if (report.whole_run) wholeRun(report);
    if (!steps.series.length) return;
    const node = section('steps', 'Steps', null), times = card(null, null);
    node.append(times);
    stepTimes(report, times);
    if (stepsTotal(steps)) {
        const pair = el('div', { class: 'pair' }), kinds = card(null, null);
        node.append(pair);
        pair.append(kinds, kindShares(steps));
        stepKinds(report, kinds);
    }
    memoryCharts(report, node);
    node.append(slowSteps(steps) ?? '', otherSteps(report) ?? '');
}

/* compare.js - this run beside another one. Two runs say nothing certain about small differences. */

function change(now, then) {
    if (!known(now) || !known(then) || then === 0) return DASH;
    const share = now / then - 1;
    return signed(percent(share), share);
}

const SHORT_FROM = 0.05, WATCHED_LEAST = 5e7;

/* The share of its time in which the stepping thread was ready and had no processor. */
function withoutProcessor(report) {
    const { observed, ready } = report.steps.processor ?? {};
    return observed >= WATCHED_LEAST ? ready / observed : 0;
}

let processorsShort = false; /* in either run: then a change has no colour */

/* A figure where less is better, or more is. */
function judged(now, then, moreIsBetter) {
    const text = change(now, then), worse = moreIsBetter ? now < then : now > then;
    return processorsShort || Math.abs(now / then - 1) < 0.02 || text === DASH ? text : el('span', { class: worse ? 'less' : 'more' }, text);
}

function figuresBeside(a, b) {
    const rows = [
        ['Step, median', a.steps.steady.p50, b.steps.steady.p50, time], ['Step, p95', a.steps.steady.p95, b.steps.steady.p95, time],
        ['Step, p99', a.steps.steady.p99, b.steps.steady.p99, time], ['Items per second', a.steps.items_per_second, b.steps.items_per_second, (v) => rate(v, ''), true],
        ['Run', a.run.wall, b.run.wall, time], ['CPU time', a.run.cpu, b.run.cpu, time]];
    return table(['Figure', 'This run', 'Other run', 'Change'], rows.filter(([, x, y]) => x && y)
        .map(([name, x, y, format, more]) => [name, format(x), format(y), judged(x, y, more)]));
}

function perStep(report, kind) {
    return report.steps.broken_down ? report.steps.kinds[kind] / report.steps.broken_down : 0;
}

function kindsBeside(a, b) {
    const kinds = KINDS.filter((kind) => perStep(a, kind) || perStep(b, kind));
    return table(['Time per step', 'This run', 'Other run', 'Difference'], kinds.map((kind) => {
        const now = perStep(a, kind), then = perStep(b, kind);
        return [[swatch(kind), kind], time(now), time(then), signed(time(now - then), now - then)];
    }));
}

/* A p99 of few calls is the largest or the second largest of them. */
function tails(region, other) {
    return Math.min(region.time.count, other.time.count) >= 300;
}

function regionsBeside(a, b) {
    const others = new Map(b.regions.map((region) => [`${region.kind} ${region.name}`, region]));
    const rows = a.regions.map((region) => ({ region, other: others.get(`${region.kind} ${region.name}`) })).filter((row) => row.other);
    const gone = b.regions.filter((region) => !a.regions.some((mine) => mine.name === region.name && mine.kind === region.kind));
    const spent = (region) => (region.step_self.count ? region.step_self.mean : region.time.mean);
    rows.sort((x, y) => Math.abs(spent(y.region) - spent(y.other)) - Math.abs(spent(x.region) - spent(x.other)));
    return [table(['Region', 'p50', 'Other', 'Change', 'p99', 'Other', 'Change'], rows.slice(0, 20).map(({ region, other }) => [
        [swatch(region.kind), region.name], time(region.time.p50), time(other.time.p50), judged(region.time.p50, other.time.p50),
        time(region.time.p99), time(other.time.p99), tails(region, other) ? judged(region.time.p99, other.time.p99) : DASH])),
    gone.length > 0 && el('p', null, `Only in the other run: ${gone.slice(0, 12).map((region) => region.name).join(', ')}${gone.length > 12 ? ' …' : ''}`)];
}

/* At the same place in their loops. */
function stepsBeside(a, b, node) {
    const rows = (report) => report.steps.series.map((row) => ({ x: row.index - report.steps.series[0].index, y: median(row), row }));
    const mine = rows(a), theirs = rows(b), at = new Map();
    for (const p of mine) at.set(p.x, { mine: p });
    for (const p of theirs) at.set(p.x, { ...at.get(p.x), theirs: p });
    const x = [...at.keys()].sort((p, q) => p - q);
    const top = 1.15 * Math.max(a.steps.steady.p99, b.steps.steady.p99, a.steps.steady.p50 * 1.2);
    new Chart(node, {
        id: 'chart-compare', title: 'Step time of both runs', note: 'Counted from the first step of each.', height: 260,
        x: { ticks: eachTick(count), axis: whole }, y: { ticks: timeTicks, range: () => [0, top] },
        lines: [{ name: 'other run', colour: 'against', spanGaps: true }, { name: 'this run', colour: 'main', spanGaps: true }],
        data: [x, x.map((i) => at.get(i).theirs?.y ?? null), x.map((i) => at.get(i).mine?.y ?? null)],
        legend: [{ colour: 'main', shape: 'line', name: 'this run' }, { colour: 'against', shape: 'line', name: 'other run' }],
        tip: (i) => ({ title: `Step ${x[i]}`, rows: [['this run', time(at.get(x[i]).mine?.y), 'main', 'line'], ['other run', time(at.get(x[i]).theirs?.y), 'against', 'line']] }),
        table: { head: ['Step', 'This run', 'Other run'], row: (i) => [x[i], time(at.get(x[i]).mine?.y), time(at.get(x[i]).theirs?.y)] },
    });
}

function compareSection(report, against, files) {
    if (!against) return;
    const [mine, other] = [report, against].map(withoutProcessor);
    processorsShort = Math.max(mine, other) >= SHORT_FROM;
    const short = processorsShort ? `Processors were short: there was none for ${percent(mine)} of the time in this run, and for ${percent(other)} in the other. `
        + 'What differs may be that alone. ' : '';
    const node = section('comparison', 'Comparison', `${short}This run is ${files.run}, the other one ${files.against}. One run of each shows what is different, `
        + 'not whether a few percent are more than chance; pk report --against without --html has the interval of each.');
    node.append(card('The runs', `The other one: ${about(against.run)}`, figuresBeside(report, against)));
    if (report.steps.series.length && against.steps.series.length) {
        const pair = el('div', { class: 'pair' }), host = card(null, null);
        node.append(pair);
        pair.append(host, card('By kind', null, kindsBeside(report, against)));
        stepsBeside(report, against, host);
    }
    if (report.regions.length && against.regions.length) {
        node.append(card('Regions of both, the largest difference first', null, regionsBeside(report, against)));
    }
    node.append(eventsBeside(report, against) ?? '');
}

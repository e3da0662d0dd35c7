/* regions.js - regions in a table, and the distribution of the one that is chosen: a histogram, and
 * above it the share of calls that took no longer. */

const REGIONS_SHOWN = 30;
const QUARTERS = () => [0, 0.25, 0.5, 0.75, 1];

/* Buckets as corners of steps: gaps between them are empty. density: calls per width on this axis. */
function corners(histogram, log) {
    const x = [], density = [], share = [], bucket = [];
    const total = histogram.reduce((sum, b) => sum + b[2], 0);
    let seen = 0;
    const put = (at, height, index) => {
        x.push(at);
        density.push(height);
        share.push(seen / total);
        bucket.push(index);
    };
    histogram.forEach(([from, to, calls], i) => {
        const low = log ? Math.max(from, to / 2) : from;
        if (x.length && low <= x.at(-1)) [x, density, share, bucket].forEach((list) => list.pop());
        put(low, calls / (log ? Math.log(to / low) : to - low), i);
        seen += calls;
        put(to, 0, null);
    });
    const most = Math.max(...density);
    return { x, density: density.map((d) => d / most), share, bucket, total };
}

function quantileMarks(dist) {
    return ['p50', 'p95', 'p99'].map((q) => ({ x: dist[q], text: `${q} ${time(dist[q])}`, colour: 'ink' }));
}

/* The other run's share at each of these places. */
function shareAt(histogram, x) {
    const total = histogram.reduce((sum, b) => sum + b[2], 0);
    return x.map((at) => histogram.reduce((sum, [from, to, calls]) =>
        sum + calls * Math.max(0, Math.min(1, (at - from) / (to - from || 1))), 0) / total);
}

/* ---- the part in which nearly all of them are: one that is far from the others would leave these no width ---- */

const RARE = 0.01, FEW = 2, FENCE = 3, WORTH = 0.6;

/* Where so many of them have been, as an edge of a bucket. */
function edgeAt(histogram, share, side) {
    const total = histogram.reduce((sum, b) => sum + b[2], 0);
    let seen = 0;
    for (const bucket of histogram) {
        seen += bucket[2];
        if (seen >= share * total) return bucket[side];
    }
    return histogram.at(-1)[side];
}

function within(histogram, [from, to]) {
    return histogram.reduce((sum, [low, high, calls]) => sum + (high > from && low < to ? calls : 0), 0);
}

/* As far as the middle half reaches, several times, and all but one in a hundred; null where that is most of it anyway. */
function usualPart(histogram, log) {
    const total = histogram.reduce((sum, b) => sum + b[2], 0), rare = Math.min(0.2, Math.max(RARE, FEW / total));
    const [to, back] = log ? [Math.log, Math.exp] : [(v) => v, (v) => v];
    const low = to(edgeAt(histogram, 0.25, 0)), high = to(edgeAt(histogram, 0.75, 1)), half = high - low;
    const from = Math.max(to(histogram[0][0]), Math.min(low - FENCE * half, to(edgeAt(histogram, rare, 0)) - half));
    const end = Math.min(to(histogram.at(-1)[1]), Math.max(high + FENCE * half, to(edgeAt(histogram, 1 - rare, 1)) + half));
    const whole = to(histogram.at(-1)[1]) - to(histogram[0][0]);
    return end - from < WORTH * whole ? [back(from), back(end)] : null;
}

function shapeSpec({ name, what, dist, histogram, other }) {
    const from = histogram[0][0], to = histogram.at(-1)[1];
    const log = from > 0 && to / from > 12, shape = corners(histogram, log);
    const margin = log ? 1.15 : (to - from) * 0.06 || to * 0.05;
    const range = log ? [from / margin, to * margin] : [Math.max(0, from - margin), to + margin];
    const ahead = sound(other) ? shareAt(other, shape.x) : null;
    const part = usualPart(histogram, log), outside = part ? shape.total - within(histogram, part) : 0;
    const told = (i) => (shape.bucket[i] == null ? i - 1 : i);
    return {
        title: `How long ${name} took`,
        note: `${count(dist.count)} ${dist.count === 1 ? 'time' : 'times'}, ${time(dist.min)} to ${time(dist.max)}, mean ${time(dist.mean)}`
            + (log ? '; the scale is logarithmic.' : '.')
            + (outside ? ` Of these ${count(outside)} ${outside === 1 ? 'is' : 'are'} outside the part that is shown.` : ''),
        x: { ticks: timeTicks, log: log ? 10 : 0, range: () => range },
        y: { ticks: percentTicks, range: () => [0, 1.28], hidden: true, axis: { splits: QUARTERS } },
        y2: { ticks: percentTicks, range: () => [0, 1.28], axis: { splits: QUARTERS } },
        lines: [
            { name: 'histogram', colour: 'main', fill: 'main', stepped: true, width: 0 },
            { name: 'no longer', colour: 'ink', scale: 'y2', width: 2 },
            ...(ahead ? [{ name: 'the other run', colour: 'against', scale: 'y2', width: 2, dash: [5, 4] }] : []),
        ],
        view: part && [Math.max(range[0], part[0]), Math.min(range[1], part[1])],
        data: [shape.x, shape.density, shape.share, ...(ahead ? [ahead] : [])],
        marks: quantileMarks(dist),
        legend: [{ colour: 'main', name: what }, { colour: 'ink', shape: 'line', name: `share of ${what} that took no longer` },
            ...(ahead ? [{ colour: 'against', shape: 'line', name: 'the same of the other run' }] : [])],
        tip: (i) => {
            const b = histogram[shape.bucket[told(i)]];
            return b && { title: `${time(b[0])} to ${time(b[1])}`, rows: [
                [what, count(b[2]), 'main'], ['of all', percent(b[2] / shape.total)],
                ['no longer', percent(shareAt(histogram, [b[1]])[0]), 'ink', 'line'],
                ...(ahead ? [['the other run', percent(shareAt(other, [b[1]])[0]), 'against', 'line']] : [])] };
        },
        table: { head: ['From', 'To', 'Number', 'Share', 'No longer'], rows: histogram.length, row: (i) => {
            const [low, high, calls] = histogram[i];
            return [time(low), time(high), count(calls), percent(calls / shape.total), percent(shareAt(histogram, [high])[0])];
        } },
    };
}

function throughput(region) {
    const seconds = region.time.sum / 1e9;
    return [region.bytes && rate(region.bytes / seconds, 'B/s'), region.flops && rate(region.flops / seconds, 'FLOP/s')]
        .filter(Boolean).join(', ') || DASH;
}

function regionTable(rows, choose) {
    const works = rows.some((region) => region.bytes || region.flops), steps = rows.some((region) => region.step_share);
    const heads = ['Region', 'Calls', 'p50', 'p95', 'p99', 'Self, in all', ...(steps ? ['Share of step'] : []), ...(works ? ['Throughput'] : [])];
    return table(heads, rows.map((region, i) => [
        [swatch(region.kind), sound(region.histogram)
            ? el('button', { type: 'button', class: 'name', onclick: () => choose(i) }, region.name) : region.name],
        count(region.time.count), time(region.time.p50), time(region.time.p95), time(region.time.p99), time(region.self),
        ...(steps ? [[region.step_share ? percent(region.step_share) : DASH, bar(region.step_share ?? 0, region.kind)]] : []),
        ...(works ? [throughput(region)] : [])]));
}

/* Buckets in order, each with an inside. */
function sound(histogram) {
    return histogram?.length > 0 && histogram.every(([from, to, calls], i) =>
        known(from) && known(to) && from >= 0 && to > from && calls > 0 && (i === 0 || from >= histogram[i - 1][1]));
}

/* What can be chosen: the steps, then the regions. */
function shapes(report, against) {
    const others = new Map((against?.regions ?? []).map((region) => [`${region.kind} ${region.name}`, region.histogram]));
    const list = sound(report.steps.histogram)
        ? [{ name: 'a steady step', what: 'steps', label: 'Steps, without the warm-up', dist: report.steps.steady,
            histogram: report.steps.histogram, other: against?.steps.histogram }] : [];
    report.regions.forEach((region, i) => {
        if (sound(region.histogram)) {
            list.push({ row: i, name: region.name, what: 'calls', label: region.name, dist: region.time, histogram: region.histogram,
                other: others.get(`${region.kind} ${region.name}`) });
        }
    });
    return list;
}

function regionSection(report, against) {
    if (!report.regions.length && !sound(report.steps.histogram)) return;
    const node = section('regions', 'Regions', 'A region’s name shows how its calls are distributed; self is its time without the regions inside it.');
    const list = shapes(report, against), host = card(null, null), listing = card(null, null);
    let chart = null;
    const choose = (index) => {
        const it = list[index];
        const spec = shapeSpec(it);
        if (!chart) chart = new Chart(host, { id: 'chart-shape', height: 280, ...spec });
        else chart.change(spec);
        picker.value = index;
        listing.querySelectorAll('tbody tr').forEach((row, i) => row.classList.toggle('chosen', i === it.row));
    };
    const picker = el('select', { id: 'pick-region', onchange: () => choose(Number(picker.value)) },
        list.map((it, i) => el('option', { value: i }, shortened(it.label))));
    const show = (all) => {
        const rows = all ? report.regions : report.regions.slice(0, REGIONS_SHOWN);
        listing.replaceChildren(regionTable(rows, (row) => {
            choose(list.findIndex((it) => it.row === row));
            host.scrollIntoView({ block: 'nearest' });
        }));
        if (!all && rows.length < report.regions.length) {
            listing.append(el('button', { type: 'button', onclick: () => show(true) }, `Show all ${count(report.regions.length)}`));
        }
    };
    if (list.length) {
        node.append(host);
        host.append(el('label', { class: 'pick' }, 'Distribution of', picker));
    }
    if (report.regions.length) {
        node.append(listing);
        show(false);
    }
    if (list.length) choose(0);
}

/* tools/html/regions.js - regions: their distributions, limits, events, costs, memory, callers. */

/* ---- regions in a table, and the distribution of the one that is chosen ---- */

/* A histogram, and above it the share of calls that took no longer. */

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

/* ---- regions beside what the machine can do ---- */

/* Operations per byte from left to right, operations per second upwards, and the roofs, min(peak, intensity x
 * bandwidth). */

const ROOFS = [['one', 'double', 'main', [5, 4]], ['one', 'single', 'comm', [5, 4]], ['all', 'double', 'main'], ['all', 'single', 'comm']];

function attainable(limits, who, precision, intensity) {
    return Math.min(limits[`${precision}_${who}`], intensity * limits[`bandwidth_${who}`]);
}

function roofName(who, precision) {
    return `${who === 'one' ? 'one processor' : 'all processors'}, ${precision} precision`;
}

/* Where a roof bends, a decade around all that is there, and the regions; by intensity. */
function places(limits, rows) {
    const bends = ROOFS.map(([who, precision]) => limits[`${precision}_${who}`] / limits[`bandwidth_${who}`]);
    const all = [...bends, ...rows.map((row) => row.intensity)];
    const ends = [Math.min(...all) / 10, Math.max(...all) * 10];
    return [...[...bends, ...ends].map((at) => ({ at })), ...rows.map((row) => ({ at: row.intensity, row }))].sort((a, b) => a.at - b.at);
}

function bound(row) {
    return row.memory_bound_double === row.memory_bound_single ? (row.memory_bound_double ? 'memory' : 'compute') : 'both';
}

function roofTip(limits, { at, row }) {
    const rows = ROOFS.map(([who, precision, tint]) => [roofName(who, precision), rate(attainable(limits, who, precision, at), 'FLOP/s'), tint, 'line']);
    if (!row) return { title: `${amount(at, '')} FLOP per byte`, rows };
    return { title: row.region, rows: [
        ['reached', rate(row.flops_per_second, 'FLOP/s'), 'data'], ['FLOP per byte', amount(at, '')], ['bound by', bound(row)],
        ['of the attainable, double', percent(row.of_double)], ['of the attainable, single', percent(row.of_single)]] };
}

function roofChart(limits, node) {
    const rows = limits.regions.filter((row) => row.intensity > 0 && row.flops_per_second > 0), at = places(limits, rows);
    const lines = ROOFS.map(([who, precision]) => at.map((place) => attainable(limits, who, precision, place.at)));
    const reached = at.map((place) => place.row?.flops_per_second ?? null);
    const heights = [...lines.flat(), ...reached].filter((v) => v > 0);
    new Chart(node, {
        id: 'chart-roofline', title: 'What regions reach of what the machine can do', height: 320,
        note: 'Both axes are logarithmic. Under the slope memory is the limit, under the flat part arithmetic.',
        x: { ticks: plainTicks, log: 10, range: () => [at[0].at, at.at(-1).at] },
        y: { ticks: (values) => values.map((v) => rate(v, 'FLOP/s')), log: 10, range: () => [Math.min(...heights) / 2, Math.max(...heights) * 2] },
        lines: [...ROOFS.map(([who, precision, tint, dash]) => ({ name: roofName(who, precision), colour: tint, width: 2, dash })),
            { name: 'regions', colour: 'data', width: 0, points: true }],
        data: [at.map((place) => place.at), ...lines, reached],
        legend: [{ colour: 'main', shape: 'line', name: 'double precision' }, { colour: 'comm', shape: 'line', name: 'single precision' },
            { colour: 'data', name: 'regions; dashed: one processor' }],
        tip: (i) => at[i] && roofTip(limits, at[i]),
        table: { head: ['FLOP per byte', 'Region', 'Reached', ...ROOFS.map(([who, precision]) => roofName(who, precision))], rows: at.length, row: (i) => [
            amount(at[i].at, ''), at[i].row?.region ?? DASH, at[i].row ? rate(at[i].row.flops_per_second, 'FLOP/s') : DASH,
            ...ROOFS.map(([who, precision]) => rate(attainable(limits, who, precision, at[i].at), 'FLOP/s'))] },
    });
}

function roofTable(limits) {
    return card('Regions with bytes and operations', 'Threads: that ran it at once. Shares: of the attainable, by precision.', table(
        ['Region', 'Threads', 'FLOP per byte', 'Bytes', 'Operations', 'Bound by', 'Double', 'Single'],
        limits.regions.map((row) => [row.region, row.all_processors ? 'all' : amount(row.threads, ''), row.intensity > 0 ? amount(row.intensity, '') : DASH,
            row.bytes_per_second > 0 ? rate(row.bytes_per_second, 'B/s') : DASH, row.flops_per_second > 0 ? rate(row.flops_per_second, 'FLOP/s') : DASH,
            bound(row), percent(row.of_double), percent(row.of_single)])));
}

function drawable(limits) {
    return ROOFS.every(([who, precision]) => limits[`${precision}_${who}`] > 0 && limits[`bandwidth_${who}`] > 0)
        && limits.regions.some((row) => row.intensity > 0 && row.flops_per_second > 0);
}

function rooflineSection(report) {
    const limits = report.roofline, host = card(null, null);
    if (!limits?.regions?.length) return;
    const node = section('roofline', 'Roofline', `Limits as pk machine measured them on ${limits.host} (${limits.cpu}).`);
    if (drawable(limits)) node.append(host);
    node.append(roofTable(limits));
    if (drawable(limits)) roofChart(limits, host);
}

/* ---- what the processor and the kernel counted in sampled calls ---- */

/* Instructions per cycle and misses of each region, with the share of calls that it is known from and its error; before
 * and after. */

const EVENT_ROWS = 30;

/* What is below 0 is not known. */
const counted = (value, format = (v) => amount(v, '')) => (known(value) && value >= 0 ? format(value) : DASH);

function eventCell(row, key, format) {
    const error = sampleError(row[`${key}_error`], row[key], format === percent);
    return [counted(row[key], format), error && el('span', { class: 'meta' }, error)];
}

function eventHead(row) {
    return [row.region, count(row.calls), row.calls ? percent(row.sampled / row.calls) : DASH];
}

const HARDWARE = [['ipc', 'IPC'], ['cache_misses_per_1000', 'Cache misses'], ['branch_misses_per_1000', 'Branch misses'],
    ['instructions', 'Instructions'], ['cycles', 'Cycles']];
const SOFTWARE = [['processor_time', 'On a processor', time], ['page_faults', 'Page faults'], ['context_switches', 'Switches'], ['migrations', 'Migrations']];
const TOPDOWN = [['slots', 'Slots'], ...SLOT_SHARES.map(([key, name]) => [key, name, percent])];

function eventTable(title, note, rows, figures) {
    const shown = rows.filter((row) => figures.some(([key]) => row[key] >= 0));
    if (!shown.length) return null;
    return card(title, note, table(['Region', 'Calls', 'Sampled', ...figures.map(([, name]) => name)],
        shown.slice(0, EVENT_ROWS).map((row) => [...eventHead(row), ...figures.map(([key, , format]) => eventCell(row, key, format))]),
        shown.length > EVENT_ROWS ? `The first ${count(EVENT_ROWS)} of ${count(shown.length)}, by time.` : null));
}

function eventFacts(events, rows, report) {
    const missed = rows.reduce((sum, row) => sum + row.missed, 0), sampled = rows.reduce((sum, row) => sum + row.sampled, 0);
    return facts([['Hardware', events.why_not_hardware], ['Software', events.why_not_software], ['Top-down', events.why_not_topdown],
        ['What it took', report.run.cpu ? `${percent(events.spent / report.run.cpu)} of the CPU time, of ${percent(events.bound)} that it may` : ''],
        ['Threads without', events.threads_without ? `${count(events.threads_without)}: ${events.why_threads}` : ''],
        ['Threads lost', events.threads_lost ? count(events.threads_lost) : ''],
        ['Calls without figures', missed ? `${count(missed)}, beside ${count(sampled)} that have them` : '']]);
}

function eventSection(report) {
    const { events } = report, rows = events?.rows ?? [];
    if (!events?.asked) return;
    section('events', 'Events a call', 'Means over sampled calls, with what is inside them. ±: 95\u202f% of samples would be as near.',
        eventTable('By the processor', 'Misses: in 1\u202f000 instructions. In user mode.', rows, HARDWARE),
        eventTable('By the kernel', null, rows, SOFTWARE),
        eventTable('By what became of pipeline slots', 'In user mode; of the slots that the thread had.',
            rows.filter((row) => row.slots > 0), TOPDOWN),
        card(null, null, eventFacts(events, rows, report)));
}

/* ---- before and after ---- */

/* By more than both errors together, which are independent. */
function beyondErrors(now, then, errors) {
    return errors.every((error) => error >= 0) && Math.abs(now - then) > Math.hypot(...errors);
}

function eventChange(row, other, key, moreIsBetter) {
    const now = row[key], then = other[key], errors = [row[`${key}_error`], other[`${key}_error`]];
    if (!(now >= 0) || !(then > 0)) return DASH;
    if (!beyondErrors(now, then, errors)) return 'within the error';
    return el('span', { class: (moreIsBetter ? now < then : now > then) ? 'less' : 'more' }, change(now, then));
}

const COMPARED = [['ipc', 'IPC', true], ['cache_misses_per_1000', 'Cache misses', false], ['branch_misses_per_1000', 'Branch misses', false],
    ['processor_time', 'On a processor', false, time], ...SLOT_SHARES.map(([key, name]) => [key, name, key === 'retiring', percent])];

function eventsBeside(a, b) {
    const others = new Map((b.events?.rows ?? []).map((row) => [row.region, row]));
    const pairs = (a.events?.rows ?? []).map((row) => [row, others.get(row.region)]).filter(([, other]) => other);
    const figures = COMPARED.filter(([key]) => pairs.some(([row, other]) => row[key] >= 0 && other[key] >= 0));
    if (!figures.length) return null;
    return card('Events a call of both runs', 'Misses: in 1\u202f000 instructions. A change is told where it is beyond the errors of both samples.', table(
        ['Region', ...figures.flatMap(([, name]) => [name, 'Other', 'Change'])], pairs.slice(0, EVENT_ROWS).map(([row, other]) => [row.region,
            ...figures.flatMap(([key, , more, format]) => [eventCell(row, key, format), eventCell(other, key, format), eventChange(row, other, key, more)])])));
}

/* ---- what the run cost beside time ---- */

/* Goodput's parts, the machine's peak, energy, files. */

const GOODPUT = [['productive', 'productive', 'compute'], ['recomputed', 'made again after a restart', 'against'], ['data_wait', 'waiting for data', 'data'],
    ['startup', 'start-up', 'wait'], ['compilation', 'compilation', 'other'], ['checkpoint', 'saving checkpoints', 'io'], ['restore', 'restoring one', 'main'],
    ['evaluation', 'evaluation', 'comm'], ['hang', 'hanging', 'warning'], ['unfinished', 'unfinished step', 'untracked'], ['other', 'other', 'idle']];

const bytes = (value) => amount(value, 'bytes');

/* Parts of a whole as one bar, and a row for each, largest first. */
function stackedBar(parts, whole) {
    const segments = parts.map(([name, value, tint]) => {
        const node = el('i', { title: `${name}: ${percent(value / whole)}` });
        node.style.width = `${(100 * value) / whole}%`;
        node.style.backgroundColor = `var(--${tint})`;
        return node;
    });
    return el('div', { class: 'stack', role: 'img', 'aria-label': parts.map(([name, value]) => `${name} ${percent(value / whole)}`).join(', ') }, segments);
}

function goodputCard(goodput) {
    const up = goodput?.up;
    if (!(up > 0)) return null;
    const parts = GOODPUT.map(([key, name, tint]) => [name, goodput.parts[key] ?? 0, tint]).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
    const again = goodput.recomputed ? ` ${count(goodput.recomputed)} of ${count(goodput.steps)} steps repeated work that an earlier run had lost.` : '';
    return card('Goodput', `What ${time(up)} since the process’s start went to.${again}`, stackedBar(parts, up), table(
        ['Part', 'Time', 'Share'], parts.map(([name, value, tint]) => [[swatch(tint), name], time(value), percent(value / up)])));
}

function utilisationCard(steps) {
    const u = steps.utilisation;
    if (!u?.steps) return null;
    return card('Operations', u.peak ? null : u.source, facts([
        ['MFU', u.peak ? percent(u.mfu) : ''], ['HFU', u.peak ? percent(u.hfu) : ''],
        ['Peak', u.peak ? `${rate(u.peak, 'FLOP/s')}${u.precision ? `, ${u.precision}` : ''}: ${u.source}` : ''],
        ['The model needs', rate(u.model / (u.time / 1e9), 'FLOP/s')], ['Done', rate(u.hardware / (u.time / 1e9), 'FLOP/s')],
        ['Steps that tell them', count(u.steps)]]));
}

/* A kind of steps whose name begins as the run's row has that twice. */
const energyOf = (kind) => (kind === '(run)' ? 'the run' : kind.startsWith('(run)') ? kind.slice(5) : kind || 'steps');

function energyCard(energy) {
    if (!energy?.asked) return null;
    const rows = (energy.rows ?? []).map((row) => [`${row.counter}, ${energyOf(row.step_kind)}`, ...(row.refused
        ? ['too short to tell', DASH, DASH, DASH, DASH] : [amount(row.joules, 'J'), `±\u202f${amount(row.error, 'J')}`, amount(row.watts, 'W'),
            row.steps ? amount(row.per_step, 'J') : DASH, row.items ? amount(row.per_item, 'J') : DASH])]);
    return card('Energy', energy.why_not || null, rows.length ? table(['Counter', 'Energy', 'Error', 'Power', 'A step', 'An item'], rows) : null,
        energy.held_steps > 0 && el('p', null, `${energy.held_by} held a GPU’s clocks down in ${count(energy.held_steps)} steps.`));
}

/* What devices were busy with, by kind of step; what they said of themselves. */
function loadCard({ gpu_load: load, gpu_events: said }) {
    if (!load?.intervals && !said?.count) return null;
    const size = (row, value) => (/_(in|out)$/.test(row.metric) ? rate(value, 'B/s') : percent(value / 100));
    const rows = (load?.rows ?? []).filter((row) => row.most > 0).map((row) => [`gpu${row.device}.${row.metric}, ${energyOf(row.step_kind)}`,
        size(row, row.mean), size(row, row.least), size(row, row.most)]);
    return card('What GPUs were busy with', rows.length ? 'by their own counters (GPM): means over time' : null,
        rows.length ? table(['Counter', 'Mean', 'Least', 'Most'], rows) : null,
        ...(said?.rows ?? []).map((row) => el('p', null,
            `GPU ${row.device}: ${row.text}, ${count(row.count)} ${row.count === 1 ? 'time' : 'times'}, first after ${time(row.first)}`)));
}

function filesRow(name, io, way, steps) {
    const seconds = io.observed / 1e9, chars = io[`${way}_chars`], calls = io[`${way}_calls`], device = io[`${way}_device`];
    return [name, bytes(chars), rate(chars / seconds, 'B/s'), count(calls), steps ? bytes(chars / steps) : DASH, bytes(device), rate(device / seconds, 'B/s'),
        rate(io[`best_${way}`], 'B/s')];
}

const STEP_FILES = [['Read', 'read', bytes], ['Written', 'written', bytes], ['From devices', 'device_read', bytes], ['For devices', 'device_written', bytes],
    ['Calls', 'operations', (value) => count(Math.round(value))]];

/* By single steps. */
function filesOfSteps(steps) {
    if (!steps?.steps) return null;
    const rows = STEP_FILES.filter(([, key]) => steps[key].each.max > 0).map(([name, key, show]) => [name,
        ...['mean', 'p50', 'p99', 'max'].map((member) => show(steps[key].each[member])), count(steps[key].most_step)]);
    const shared = steps.steps - steps.alone;
    return [rows.length > 0 && table(['In a step', 'Mean', 'p50', 'p99', 'Most', 'In step'], rows),
        el('p', null, `${count(steps.device)} of ${count(steps.steps)} steps read from a device or wrote for one (${percent(steps.device / steps.steps)}).${
            shared > 0 ? ` ${count(shared)} share readings, and have the mean of theirs each.` : ''}`)].filter(Boolean);
}

function filesCard(report) {
    const io = report.io;
    if (!io?.asked) return null;
    const steps = report.steps.count;
    const node = card('Files', io.why_not ? `Bytes and calls are unknown: ${io.why_not}.` : 'As the kernel counts, without perfkit’s own thread.');
    if (!io.why_not) {
        node.append(table(['', 'Bytes', 'Rate', 'Calls', 'A step', 'Of a device', 'Its rate', 'At best'],
            [filesRow('Read', io, 'read', steps), filesRow('Written', io, 'write', steps)]));
    }
    node.append(...(filesOfSteps(io.steps) ?? []));
    node.append(facts([['Exposed', io.exposed ? `${time(io.exposed)} in regions of kind io, on the thread that makes steps` : ''],
        ['Hidden', io.hidden ? `${time(io.hidden)}, on other threads` : ''], ['Waiting for devices', io.blocked_known ? time(io.blocked) : ''],
        ['Checkpoints', io.saves ? `${count(io.saves)}: ${time(io.save_time / io.saves)} and ${bytes(io.save_bytes / io.saves)} each` : '']]));
    return node;
}

function costSection(report) {
    const memory = report.memory?.looks ? report.memory : null, devices = deviceMemory(report.gpu_memory);
    const cards = [goodputCard(report.goodput), utilisationCard(report.steps), energyCard(report.energy), loadCard(report), filesCard(report)].filter(Boolean);
    if (!cards.length && !memory && !devices.length) return;
    const node = section('costs', 'What it cost', 'Beside time; only what was measured is shown.', cards);
    if (memory) node.append(memoryFacts(memory), memoryRegions(memory.regions, 'Memory by region') ?? '');
    node.append(...devices);
    if (!report.steps.series.length) memoryCharts(report, node);
}

/* ---- memory of the process and of devices, step by step, with the slope of what grows ---- */

/* And by region. */

const RESIDENT = 'memory.resident', HOST_LINES = [[RESIDENT, 'resident', 'main'], ['memory.allocated', 'allocated, as libpk_alloc counts', 'against']];
const DEVICE_LINE = /^(gpu\d+)\.(allocated|pool_reserved)$/, DEVICE_TINTS = ['main', 'against', 'comm', 'data', 'wait', 'io'];

function seriesOfCounter(report, name) {
    const points = report.counters.find((counter) => counter.name === name)?.series ?? [];
    return points.length > 1 ? points : [];
}

/* Of the process: as counters tell; else what every report has. */
function hostLines(report) {
    const lines = HOST_LINES.map(([of, name, tint]) => ({ of, name, tint, points: seriesOfCounter(report, of) }));
    if (!lines[0].points.length) lines[0].points = report.memory?.series ?? [];
    return lines.filter((line) => line.points.length > 1);
}

/* Counters come in the order of their first use: here by device, what is allocated first. left: names without a line. */
function deviceLines(report) {
    const found = report.counters.filter((counter) => DEVICE_LINE.test(counter.name) && counter.series?.length > 1)
        .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
    const name = (counter) => counter.name.replace('.allocated', ' allocated').replace('.pool_reserved', ' reserved by pools');
    return { left: found.slice(DEVICE_TINTS.length).map(name), lines: found.slice(0, DEVICE_TINTS.length)
        .map((counter, i) => ({ name: name(counter), tint: DEVICE_TINTS[i], points: counter.series, of: counter.name })) };
}

/* Of the devices, the line of what lives on the one that grows most. */
function deviceGrowth(report, lines) {
    const growthOf = (line) => report.gpu_memory?.places?.find((place) => line.of === `${place.place}.allocated`)?.growth;
    return lines.map((line) => ({ line, growth: growthOf(line) })).filter(({ growth }) => growth?.per_step > 0)
        .sort((a, b) => b.growth.per_step - a.growth.per_step)[0];
}

/* Where in the loop a moment lies, as a number of steps. */
function stepAt(series, ns) {
    const row = series.findLast((entry) => entry.start <= ns) ?? series[0];
    return row.index + Math.max(0, Math.min(row.steps, row.duration ? ((ns - row.start) / row.duration) * row.steps : 0));
}

/* The slope that the verdict judges, over the steps that it judges, through the middle of what was seen there. */
function trendOf(growth, line, place) {
    const last = place(line.points.at(-1)[0]), inside = line.points.map((p) => [place(p[0]), p[3]]).filter(([x]) => x >= last - growth.steps);
    if (inside.length < 2) return null;
    const mean = (k) => inside.reduce((sum, p) => sum + p[k], 0) / inside.length, x = mean(0), y = mean(1);
    return (at) => (at >= last - growth.steps && at <= last ? y + growth.per_step * (at - x) : null);
}

/* grown: the line that grows and its growth, drawn where there are steps to tell it by. */
function memoryChart(report, lines, grown, { id, title, note }, node) {
    const { series } = report.steps, steps = series.length > 0, place = steps ? (ns) => stepAt(series, ns) : (ns) => ns;
    const moments = [...new Set(lines.flatMap((line) => line.points.map((p) => p[0])))].sort((a, b) => a - b);
    const at = moments.map(place), values = lines.map((line) => { const by = new Map(line.points.map((p) => [p[0], p[3]])); return moments.map((x) => by.get(x) ?? null); });
    const trend = steps && grown?.line && grown.growth?.per_step > 0 ? trendOf(grown.growth, grown.line, place) : null;
    const most = Math.max(...lines.flatMap((line) => line.points.map((p) => p[4]))), shown = [...lines];
    if (trend) {
        shown.push({ name: `${lines.length > 1 ? `${grown.line.name} ` : ''}grows by ${bytes(grown.growth.per_step)} a step`, tint: 'warning', dash: [5, 4] });
        values.push(at.map(trend));
    }
    new Chart(node, {
        id, title, height: 220, note: ['Where a point stands for several looks, their mean.', note].filter(Boolean).join(' '),
        x: { ticks: steps ? eachTick(count) : timeTicks, axis: steps ? whole : undefined, range: (u, min, max) => (max > min ? [min, max] : [min - 1, max + 1]) },
        y: { ticks: byteTicks, range: () => [0, most * 1.08 || 1] },
        lines: shown.map(({ name, tint, dash }) => ({ name, colour: tint, width: 2, dash, points: at.length < 30, spanGaps: true })), data: [at, ...values],
        legend: shown.map(({ name, tint }) => ({ colour: tint, shape: 'line', name })),
        tip: (i) => known(at[i]) && { title: steps ? `Step ${Math.floor(at[i])}, ${time(moments[i])}` : time(moments[i]),
            rows: shown.map(({ name, tint }, k) => [name, bytes(values[k][i]), tint, 'line']).filter(([, text]) => text !== DASH) },
        table: { head: ['At', ...shown.map(({ name }) => name)], row: (i) => [time(moments[i]), ...values.map((line) => bytes(line[i]))] },
    });
}

function memoryCharts(report, node) {
    const host = hostLines(report), devices = deviceLines(report), cards = [host, devices.lines].map((lines) => (lines.length ? card(null, null) : null));
    const shown = cards.filter(Boolean), resident = { line: host.find((line) => line.of === RESIDENT), growth: report.memory?.growth };
    const left = devices.left.length ? `Without a line of their own: ${devices.left.join(', ')}.` : '';
    if (shown.length) node.append(shown.length > 1 ? el('div', { class: 'pair' }, shown) : shown[0]);
    if (host.length) memoryChart(report, host, resident, { id: 'chart-memory', title: 'Memory of the process' }, cards[0]);
    if (devices.lines.length) {
        memoryChart(report, devices.lines, deviceGrowth(report, devices.lines), { id: 'chart-device-memory', title: 'Memory of devices', note: left }, cards[1]);
    }
}

/* ---- figures ---- */

function memoryFacts(memory) {
    const growth = memory.growth?.per_step > 0 && `${bytes(memory.growth.per_step)} a step`;
    const faults = (dist, all) => (dist?.count ? `${amount(dist.mean, '')} a step, p99 ${amount(dist.p99, '')}` : count(all));
    return card('Memory', null, facts([['Resident', `${bytes(memory.resident)} at the end, ${bytes(memory.most_resident)} at most`],
        ['Private', `${bytes(memory.most_private)} at most`], ['Grows by', growth || ''],
        ['Limit', memory.limit ? `${bytes(memory.limit)} (${memory.limit_of}), of which ${percent(memory.used / memory.limit)} were in use` : ''],
        ['Page faults', faults(memory.step_minor, memory.minor_faults)], ['From a disk', faults(memory.step_major, memory.major_faults)],
        ['libpk_alloc', memory.uncounted ? `counts ${memory.allocator ? 'not all' : 'nothing'}: ${memory.uncounted}` : ''],
        ['Allocated', memory.allocator ? `${bytes(memory.live)} at the end, ${bytes(memory.peak)} at most (within ${bytes(memory.within)})` : ''],
        ['...estimated', memory.sampled ? `from one byte in ${bytes(memory.sampled)}` : '']]));
}

function memoryRegions(regions, title) {
    if (!regions?.length) return null;
    return card(title, 'What was asked for while it was the innermost region.', table(['Region', 'Allocations', 'Bytes', 'Alive', 'Peak', 'At the peak of all', 'Grows by, a step'],
        regions.slice(0, 20).map((r) => [r.name || '(outside of regions)', count(r.allocations), bytes(r.bytes), bytes(r.live), bytes(r.peak), bytes(r.at_peak),
            r.growth?.per_step > 0 ? bytes(r.growth.per_step) : DASH])));
}

function poolTable(place) {
    if (!place.pools?.length) return null;
    return card(`Pools of ${place.place}`, 'Unused: of what was reserved when most was, kept for later or in pieces.', table(
        ['Pool', 'Reserved at most', 'In use then', 'Unused', 'Reserved at the end', 'In use'], place.pools.map((pool) => [
            `${pool.pool}${pool.gone ? ', given back' : ''}`, bytes(pool.most_reserved), bytes(pool.used_then), percent(pool.unused), bytes(pool.reserved), bytes(pool.used)])));
}

/* What makes figures of devices less than exact; '': nothing. */
function deviceDoubts(memory) {
    return [memory.unknown_frees && `Freed, and allocated before the recording: ${bytes(memory.unknown_freed)} in ${count(memory.unknown_frees)} calls.`,
        memory.untied && `The region of ${count(memory.untied)} allocations is unknown: they count outside of regions.`,
        memory.pools_beyond && `Records of pools beyond the first 64 at once, not counted: ${count(memory.pools_beyond)}.`,
        (memory.dropped || memory.lost || memory.missed_frees) && `Not exact: CUPTI dropped ${count(memory.dropped ?? 0)} records, of whatever kind; `
            + `${count(memory.lost ?? 0)} were not counted, without a time or for want of memory; ${count(memory.missed_frees ?? 0)} frees were not seen.`]
        .filter(Boolean).join(' ');
}

function deviceMemory(memory) {
    if (!memory?.asked) return [];
    if (memory.why_not) return [card('Memory of devices', `Not recorded: ${memory.why_not}`)];
    const doubts = deviceDoubts(memory), told = doubts ? [card('Memory of devices', doubts)] : [];
    return told.concat((memory.places ?? []).flatMap((place) => [card(`Memory of ${place.place}`, null, facts([
        ['Alive', `${bytes(place.live)} at the end, ${bytes(place.peak)} at most (${time(place.peak_ns)} into the run)`],
        ['Taken', place.total ? `${bytes(place.most_held)} of ${bytes(place.total)} at most` : `${bytes(place.most_held)} at most`],
        ['In use by all', place.in_use ? `${bytes(place.in_use)} at most, as NVML saw it` : ''],
        ['Pools', place.most_reserved ? `${bytes(place.most_reserved)} reserved at most, ${percent(place.unused)} of it unused then` : ''],
        ['Grows by', place.growth?.per_step > 0 ? `${bytes(place.growth.per_step)} a step` : '']])),
    memoryRegions(place.regions, `Memory of ${place.place} by region`), poolTable(place)].filter(Boolean)));
}

/* ---- the call tree ---- */

/* Regions in those that they were called in; rows that open and close. */

const TREE_OPEN = 0.05, TREE_ROWS = 400;

/* Rows in preorder become nodes. */
function treeOf(rows) {
    const root = { inner: [], depth: -1, open: true }, around = [root];
    for (const row of rows) {
        while (around.at(-1).depth >= row.depth) around.pop();
        const node = { ...row, inner: [], open: false };
        around.at(-1).inner.push(node);
        around.push(node);
    }
    return root;
}

function treeSection(report) {
    const rows = report.tree ?? [];
    if (!rows.length) return;
    const root = treeOf(rows), total = root.inner.reduce((sum, node) => sum + node.time, 0) || 1;
    const host = el('div'), columns = [['calls', 'Calls'], ['time', 'Time'], ['self', 'Self']];
    let by = 'time';
    const openLarge = (node) => {
        node.open = node.depth < 0 || node.time >= TREE_OPEN * total;
        node.inner.forEach(openLarge);
    };
    const sort = (node) => {
        node.inner.sort((a, b) => b[by] - a[by]);
        node.inner.forEach(sort);
    };
    const visible = (node, list) => {
        for (const inner of node.inner) {
            list.push(inner);
            if (inner.open) visible(inner, list);
        }
        return list;
    };
    const name = (node) => {
        const text = [swatch(node.kind), node.name];
        const cell = el('span', { class: 'branch' }, node.inner.length
            ? el('button', { type: 'button', class: 'name', 'aria-expanded': String(node.open), 'data-path': node.id,
                onclick: () => { node.open = !node.open; show(node.id); } }, el('span', { 'aria-hidden': 'true' }, node.open ? '▾ ' : '▸ '), text)
            : text);
        cell.style.paddingLeft = `${Math.min(node.depth, 24) * 14 + (node.inner.length ? 0 : 14)}px`;
        return cell;
    };
    const show = (focus) => {
        const all = visible(root, []), shown = all.slice(0, TREE_ROWS);
        const heads = columns.map(([key, text]) => el('button', { type: 'button', class: 'name', 'data-sort': key,
            onclick: () => { by = key; sort(root); show(`sort ${key}`); } }, text + (by === key ? ' ↓' : '')));
        host.replaceChildren(table(['Region', ...heads, 'Share'], shown.map((node) => [name(node), count(node.calls), time(node.time), time(node.self),
            [percent(node.time / total), bar(node.time / total, node.kind)]])));
        host.querySelectorAll('thead th').forEach((th, i) => {
            if (columns[i - 1]?.[0] === by) th.setAttribute('aria-sort', 'descending');
        });
        if (shown.length < all.length) host.append(el('p', null, `and ${count(all.length - shown.length)} more rows: close some.`));
        const again = focus?.startsWith('sort ') ? `[data-sort="${focus.slice(5)}"]` : `[data-path="${focus}"]`;
        if (focus) host.querySelector(again)?.focus();
    };
    let next = 0;
    const number = (node) => node.inner.forEach((inner) => { inner.id = `t${next++}`; number(inner); });
    number(root);
    openLarge(root);
    sort(root);
    const all = (open) => () => {
        const set = (node) => node.inner.forEach((inner) => { inner.open = open; set(inner); });
        set(root);
        show();
    };
    section('tree', 'Call tree', 'Of all threads: a region in those that it was called in. Time is with what is inside, self without.').append(
        card(null, null, el('div', { class: 'tools' }, el('button', { type: 'button', onclick: all(true) }, 'Open all'),
            el('button', { type: 'button', onclick: all(false) }, 'Close all')), host));
    show();
}

/* costs.js - what the run cost beside time: goodput's parts, the machine's peak, energy, files, memory. */

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
    const again = goodput.recomputed ? ` ${count(goodput.recomputed)} of ${count(goodput.steps)} steps had been made by an earlier run, and lost.` : '';
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

const energyOf = (kind) => (kind === '(run)' ? 'the run' : kind || 'steps');

function energyCard(energy) {
    if (!energy?.asked) return null;
    const rows = (energy.rows ?? []).map((row) => [`${row.counter}, ${energyOf(row.step_kind)}`, ...(row.refused
        ? ['too short to tell', DASH, DASH, DASH, DASH] : [amount(row.joules, 'J'), `±\u202f${amount(row.error, 'J')}`, amount(row.watts, 'W'),
            row.steps ? amount(row.per_step, 'J') : DASH, row.items ? amount(row.per_item, 'J') : DASH])]);
    return card('Energy', energy.why_not || null, rows.length ? table(['Counter', 'Energy', 'Error', 'Power', 'A step', 'An item'], rows) : null,
        energy.held_steps > 0 && el('p', null, `${energy.held_by} held a GPU’s clocks down in ${count(energy.held_steps)} steps.`));
}

function filesRow(name, io, way, steps) {
    const seconds = io.observed / 1e9, chars = io[`${way}_chars`], calls = io[`${way}_calls`], device = io[`${way}_device`];
    return [name, bytes(chars), rate(chars / seconds, 'B/s'), count(calls), steps ? bytes(chars / steps) : DASH, bytes(device), rate(device / seconds, 'B/s'),
        rate(io[`best_${way}`], 'B/s')];
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
    node.append(facts([['Exposed', io.exposed ? `${time(io.exposed)} in regions of kind io, on the thread that makes steps` : ''],
        ['Hidden', io.hidden ? `${time(io.hidden)}, on other threads` : ''], ['Waiting for devices', io.blocked_known ? time(io.blocked) : ''],
        ['Checkpoints', io.saves ? `${count(io.saves)}: ${time(io.save_time / io.saves)} and ${bytes(io.save_bytes / io.saves)} each` : '']]));
    return node;
}

const MEMORY_LINES = [['memory.resident', 'resident', 'main'], ['memory.allocated', 'allocated, as libpk_alloc counts', 'against']];

/* What libpk_alloc's counters say: the steps' memory as the run went on. */
function memoryLines(report) {
    return MEMORY_LINES.map(([counter, name, tint]) => ({ name, tint, points: report.counters.find((c) => c.name === counter)?.series ?? [] }))
        .filter((line) => line.points.length > 1);
}

function memoryChart(report, lines, node) {
    const at = [...new Set(lines.flatMap((line) => line.points.map((p) => p[0])))].sort((a, b) => a - b);
    const values = lines.map((line) => { const by = new Map(line.points.map((p) => [p[0], p[3]])); return at.map((x) => by.get(x) ?? null); });
    const most = Math.max(...lines.flatMap((line) => line.points.map((p) => p[4])));
    new Chart(node, {
        id: 'chart-memory', title: 'Memory over the run', height: 200, note: 'Looked at ten times a second; where a point stands for several looks, their mean.',
        x: { ticks: timeTicks, range: (u, min, max) => (max > min ? [min, max] : [min - 1, max + 1]) },
        y: { ticks: byteTicks, range: () => [0, most * 1.08 || 1] },
        lines: lines.map(({ name, tint }) => ({ name, colour: tint, width: 2, points: at.length < 30 })), data: [at, ...values],
        legend: lines.map(({ name, tint }) => ({ colour: tint, shape: 'line', name })),
        tip: (i) => known(at[i]) && { title: time(at[i]), rows: lines.map(({ name, tint }, k) => [name, bytes(values[k][i]), tint, 'line']) },
        table: { head: ['At', ...lines.map(({ name }) => name)], row: (i) => [time(at[i]), ...values.map((line) => bytes(line[i]))] },
    });
}

function memoryFacts(memory) {
    const growth = memory.growth?.per_step > 0 && `${bytes(memory.growth.per_step)} a step`;
    const faults = (dist, all) => (dist?.count ? `${amount(dist.mean, '')} a step, p99 ${amount(dist.p99, '')}` : count(all));
    return card('Memory', null, facts([['Resident', `${bytes(memory.resident)} at the end, ${bytes(memory.most_resident)} at most`],
        ['Private', `${bytes(memory.most_private)} at most`], ['Grows by', growth || ''],
        ['Limit', memory.limit ? `${bytes(memory.limit)} (${memory.limit_of}), of which ${percent(memory.used / memory.limit)} were in use` : ''],
        ['Page faults', faults(memory.step_minor, memory.minor_faults)], ['From a disk', faults(memory.step_major, memory.major_faults)],
        ['Allocated', memory.allocator ? `${bytes(memory.live)} at the end, ${bytes(memory.peak)} at most (within ${bytes(memory.within)})` : '']]));
}

function memoryRegions(memory) {
    if (!memory.regions?.length) return null;
    return card('Memory by region', 'What was asked for while it was the innermost region.', table(['Region', 'Allocations', 'Bytes', 'Alive', 'Peak', 'At the peak of all'],
        memory.regions.slice(0, 20).map((r) => [r.name || '(outside of regions)', count(r.allocations), bytes(r.bytes), bytes(r.live), bytes(r.peak), bytes(r.at_peak)])));
}

function costSection(report) {
    const memory = report.memory?.looks ? report.memory : null, host = card(null, null);
    const cards = [goodputCard(report.goodput), utilisationCard(report.steps), energyCard(report.energy), filesCard(report)].filter(Boolean);
    if (!cards.length && !memory) return;
    const node = section('costs', 'What it cost', 'Beside time; only what was measured is shown.', cards);
    if (!memory) return;
    const lines = memoryLines(report);
    if (lines.length) node.append(host);
    node.append(memoryFacts(memory), memoryRegions(memory) ?? '');
    if (lines.length) memoryChart(report, lines, host);
}

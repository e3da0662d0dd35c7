/* costs.js - what the run cost beside time: goodput's parts, the machine's peak, energy, files; memory is in memory.js. */

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
    const cards = [goodputCard(report.goodput), utilisationCard(report.steps), energyCard(report.energy), filesCard(report)].filter(Boolean);
    if (!cards.length && !memory && !devices.length) return;
    const node = section('costs', 'What it cost', 'Beside time; only what was measured is shown.', cards);
    if (memory) node.append(memoryFacts(memory), memoryRegions(memory.regions, 'Memory by region') ?? '');
    node.append(...devices);
    if (!report.steps.series.length) memoryCharts(report, node);
}

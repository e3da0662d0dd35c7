/* memory.js - memory of the process and of devices, step by step, with the slope of what grows; and by region. */

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
        ['Allocated', memory.allocator ? `${bytes(memory.live)} at the end, ${bytes(memory.peak)} at most (within ${bytes(memory.within)})` : '']]));
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

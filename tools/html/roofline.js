/* roofline.js - regions beside what the machine can do: operations per byte from left to right,
 * operations per second upwards, and the roofs, min(peak, intensity x bandwidth). */

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

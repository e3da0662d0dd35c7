/* gpu.js - devices: what each step's time was on them, what their gaps follow, and kernels. */

const KERNELS_SHOWN = 15;

const FIGURES = [
    ['busy', 'Busy', time], ['idle', 'Idle', time], ['gaps', 'Gaps', amount], ['longest_gap', 'Longest gap', time],
    ['sync_gaps', 'Gaps after a wait of the host', time], ['launch_gaps', 'Gaps between launches', time],
    ['copy', 'Copying', time], ['copy_alone', 'Copying, no kernel beside it', time], ['sync', 'Host waited', time],
    ['comm', 'Collectives in flight', time], ['comm_hidden', '… behind other work', time], ['comm_exposed', '… with nothing beside them', time],
    ['kernels', 'Kernels', amount], ['short_kernels', 'Kernels below 10 µs', amount],
    ['h2d_bytes', 'Host to device', (v) => amount(v, 'bytes')], ['d2h_bytes', 'Device to host', (v) => amount(v, 'bytes')],
    ['memory', 'Memory in use', (v) => amount(v, 'bytes')],
];

/* A step's time on the device, in parts that add up to it. */
const PARTS = [
    ['kernels', 'compute', (r) => Math.max(0, r.busy - r.copy_alone - (r.comm_exposed ?? 0))],
    ['collectives, nothing beside them', 'comm', (r) => r.comm_exposed ?? 0], ['copies alone', 'data', (r) => r.copy_alone],
    ['idle after a wait of the host', 'wait', (r) => r.sync_gaps], ['idle between launches', 'io', (r) => r.launch_gaps],
    ['idle otherwise', 'idle', (r) => Math.max(0, r.step - r.busy - r.sync_gaps - r.launch_gaps)],
];
const SPAN_PARTS = [['busy, by stream spans', 'compute', (r) => r.busy], ['idle', 'idle', (r) => Math.max(0, r.step - r.busy)]];

function gpuChart(gpu, node) {
    const { series } = gpu, sums = series.map(() => 0);
    const parts = (gpu.measured ? PARTS : SPAN_PARTS).filter(([, , of]) => series.some((row) => of(row) > 0));
    const layers = parts.map(([, , of]) => series.map((row, i) => (sums[i] += of(row) / (row.step || 1))));
    const last = series.at(-1), x = series.map((row) => row.index);
    x.push(last.index + last.steps);
    layers.forEach((layer) => layer.push(layer.at(-1)));
    new Chart(node, {
        id: `chart-gpu-${gpu.device}`, title: `GPU ${gpu.device} in each step`, height: 240,
        note: gpu.measured ? 'As CUPTI measured its kernels and copies.' : 'By the regions on its streams, from event to event.',
        x: { ticks: eachTick(count), axis: whole }, y: { ticks: percentTicks, range: () => [0, 1] },
        lines: parts.map(([name, tint]) => ({ name, colour: tint, fill: tint, width: 0, stepped: true })).reverse(),
        data: [x, ...layers.reverse()],
        legend: parts.map(([name, tint]) => ({ colour: tint, name })),
        tip: (i) => series[i] && ({ title: stepName(series[i]), rows: [
            ...parts.map(([name, tint, of]) => [name, percent(of(series[i]) / series[i].step), tint]),
            ['gaps per step', amount(series[i].gaps / series[i].steps, '')], ['longest gap', time(series[i].longest_gap)]] }),
        table: { head: ['Step', 'Busy', 'Gaps per step', 'Longest gap', 'Kernels per step'], rows: series.length, row: (i) => {
            const row = series[i];
            return [row.index, percent(row.busy / row.step), amount(row.gaps / row.steps, ''), time(row.longest_gap), amount(row.kernels / row.steps, '')];
        } },
    });
}

function gpuFigures(gpu) {
    const step = gpu.per_step.step?.sum;
    const rows = FIGURES.filter(([key]) => gpu.per_step[key]?.max > 0).map(([key, name, format]) => {
        const dist = gpu.per_step[key];
        return [name, format(dist.p50, ''), format(dist.p99, ''), format === time && step && key !== 'longest_gap' ? percent(dist.sum / step) : ''];
    });
    return rows.length ? card('Per steady step', null, table(['', 'p50', 'p99', 'Share'], rows)) : null;
}

function kernelTable(kernels) {
    const total = kernels.reduce((sum, kernel) => sum + kernel.time.sum, 0);
    return card('Kernels', `${count(kernels.length)} names, ${time(total)} in all.`, table(
        ['Kernel', 'Calls', 'p50', 'p99', 'In all', 'Share', ['Launched in', 'words']],
        kernels.slice(0, KERNELS_SHOWN).map((kernel) => [el('code', null, kernel.name), count(kernel.time.count), time(kernel.time.p50),
            time(kernel.time.p99), time(kernel.time.sum), [percent(kernel.time.sum / total), bar(kernel.time.sum / total, 'compute')],
            kernel.region || DASH])));
}

function gpuSection(report) {
    if (!report.gpus.length) return;
    const node = section('gpus', 'GPUs', null);
    for (const gpu of report.gpus) {
        const pair = el('div', { class: 'pair' }), host = card(null, null);
        node.append(pair);
        if (gpu.series?.length) pair.append(host);
        pair.append(gpuFigures(gpu) ?? '');
        if (gpu.series?.length) gpuChart(gpu, host);
    }
    if (report.kernels.length) node.append(kernelTable(report.kernels));
}

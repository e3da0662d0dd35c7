/* tools/html/report.js - the page of a report: devices, communicators, counters, requests, and all parts in order. */

/* ---- devices: what each step's time was on them, what their gaps follow, and kernels ---- */

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

/* ---- operations on communicators: bandwidth over size, and what was waited for ---- */

const LINES = ['comm', 'compute', 'data', 'io', 'wait', 'other'];

function commName(comm, row) {
    const it = comm.communicators[row.communicator] ?? {};
    return [it.library, it.name].filter(Boolean).join(' ') || `communicator ${row.communicator}`;
}

function operations(comm) {
    const groups = new Map();
    for (const row of comm.collectives) {
        const key = `${row.operation}, ${commName(comm, row)}`;
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(row);
    }
    return groups;
}

function bandwidthChart(comm, node) {
    const groups = [...operations(comm)].map(([name, rows]) => [name, rows.filter((row) => row.busbw?.count && row.size)])
        .filter(([, rows]) => rows.length).slice(0, LINES.length);
    if (!groups.length) return false;
    const all = groups.flatMap(([name, rows], g) => rows.map((row) => ({ name, row, g, x: row.bytes / row.time.count })));
    const places = [...new Set(all.map((p) => p.x))].sort((a, b) => a - b);
    const at = places.map((x) => all.filter((p) => p.x === x));
    const format = (v) => amount(v, 'GB/s');
    const rates = all.map((p) => p.row.busbw.p50), most = Math.max(...rates), least = Math.min(...rates);
    const log = most / least > 30;
    new Chart(node, {
        id: 'chart-comm', title: 'Bus bandwidth by size', height: 280,
        note: 'The median of each size class, at the mean size in it; bus bandwidth as nccl-tests count it.',
        x: { ticks: eachTick((v) => byteTicks([v])[0]), log: 10, range: () => [places[0] / 2, places.at(-1) * 2] },
        y: { ticks: eachTick((v) => `${Number(v.toPrecision(3))}\u202fGB/s`),
            ...(log ? { log: 10, range: () => [least / 2, most * 2] } : { range: fromZero }) },
        lines: groups.map(([name], g) => ({ name, colour: LINES[g], points: true, spanGaps: true, width: 2 })),
        data: [places, ...groups.map((_, g) => at.map((here) => here.find((p) => p.g === g)?.row.busbw.p50 ?? null))],
        legend: groups.map(([name], g) => ({ colour: LINES[g], shape: 'line', name })),
        tip: (i) => ({ title: amount(places[i], 'bytes'), rows: at[i].flatMap(({ name, row, g }) => [
            [name, format(row.busbw.p50), LINES[g], 'line'], ['from, to', `${format(row.busbw.min)}, ${format(row.busbw.max)}`],
            [`${count(row.time.count)} calls, p50`, time(row.time.p50)]]) }),
        table: { head: ['Operation', 'Size', 'Calls', 'Time p50', 'Bus p50', 'Bus min', 'Bus max', 'Algorithm p50'], rows: all.length, row: (i) => {
            const { row, name, x } = all[i];
            return [name, amount(x, 'bytes'), count(row.time.count), time(row.time.p50),
                ...['p50', 'min', 'max'].map((q) => format(row.busbw[q])), format(row.algbw?.p50)];
        } },
    });
    return true;
}

function operationTable(comm) {
    const sum = (rows, of) => rows.reduce((total, row) => total + of(row), 0);
    return card('Operations', 'Exposed is what the program’s threads waited for. Time and exposed are sums: of operations beside each other they are more than has passed.', table(
        ['Operation', 'Calls', 'Bytes', 'Time', 'Exposed', 'Exposed, share'], [...operations(comm)].map(([name, rows]) => {
            const spent = sum(rows, (r) => r.time.sum), exposed = sum(rows, (r) => r.exposed);
            return [name, count(sum(rows, (r) => r.time.count)), amount(sum(rows, (r) => r.bytes), 'bytes'), time(spent), time(exposed),
                [percent(spent ? exposed / spent : 0), bar(spent ? exposed / spent : 0, 'comm')]];
        })));
}

function slowestCalls(comm) {
    if (!comm.slowest.length) return null;
    return card('The slowest operations', null, table(['Operation', 'Took', 'Bytes', 'Sequence', 'Step', ['In', 'words']],
        comm.slowest.slice(0, 10).map((row) => [`${row.operation}, ${commName(comm, row)}`, time(row.duration), amount(row.bytes, 'bytes'),
            count(row.sequence), row.in_step ? count(row.step) : DASH, row.region || DASH])));
}

function commSection(report) {
    const comm = report.comm;
    if (!comm?.collectives?.length) return;
    const node = section('communication', 'Communication', null), host = card(null, null);
    if (bandwidthChart(comm, host)) node.append(host);
    node.append(operationTable(comm), slowestCalls(comm) ?? '');
}

/* ---- counters over the run, in small multiples ---- */

function counterChart(counter, index, host) {
    const points = counter.series, format = (v) => amount(v, counter.unit);
    const merged = points.some((p) => p[1] > 1), ends = [counter.value.min, counter.value.max];
    const pad = (ends[1] - ends[0]) * 0.08 || Math.abs(ends[1]) * 0.1 || 1;
    const low = ends[0] >= 0 && ends[0] < 0.5 * ends[1] ? 0 : ends[0] - pad;
    new Chart(host, {
        id: `chart-counter-${index}`, title: counter.name, height: 170,
        note: `${format(ends[0])} to ${format(ends[1])}, p50 ${format(counter.value.p50)}, last ${format(counter.last)}`,
        x: { ticks: timeTicks, range: (u, min, max) => (max > min ? [min, max] : [min - 1, max + 1]) },
        y: { ticks: counter.unit === 'bytes' ? byteTicks : plainTicks, range: () => [low, ends[1] + pad] },
        lines: [...(merged ? [{ name: 'largest', colour: 'main', fill: 'band', width: 0 }, { name: 'smallest', colour: 'main', fill: 'surface', width: 0 }] : []),
            { name: 'mean', colour: 'main', points: points.length < 30 }],
        data: [points.map((p) => p[0]), ...(merged ? [points.map((p) => p[4]), points.map((p) => p[2])] : []), points.map((p) => p[3])],
        tip: (i) => ({ title: time(points[i][0]), rows: [[merged ? 'mean' : 'value', format(points[i][3]), 'main', 'line'],
            ...(merged ? [['smallest', format(points[i][2])], ['largest', format(points[i][4])], ['samples', count(points[i][1])]] : [])] }),
        table: { head: ['At', 'Samples', 'Smallest', 'Mean', 'Largest'],
            row: (i) => [time(points[i][0]), count(points[i][1]), format(points[i][2]), format(points[i][3]), format(points[i][4])] },
    });
}

function counterSection(report) {
    const counters = report.counters.filter((counter) => counter.value.count);
    if (!counters.length) return;
    const drawn = counters.filter((counter) => counter.series?.length), grid = el('div', { class: 'grid' });
    const node = section('counters', 'Counters', 'Over the run, from its start; where a point stands for several samples, their mean and from the smallest to the largest.');
    node.append(grid);
    drawn.forEach((counter, i) => {
        const host = card(null, null);
        grid.append(host);
        counterChart(counter, i, host);
    });
    const rest = counters.filter((counter) => !counter.series?.length);
    if (rest.length) {
        node.append(card(null, null, table(['Counter', 'Samples', 'Smallest', 'p50', 'p99', 'Largest', 'Last'], rest.map((c) => [
            c.name, count(c.value.count), ...['min', 'p50', 'p99', 'max'].map((q) => amount(c.value[q], c.unit)), amount(c.last, c.unit)]))));
    }
}

/* ---- spans, from begin to end on whatever threads, and requests: what they waited for ---- */

const CAUSES = [['queued', 'Queued, not scheduled yet', 'wait'], ['preempted', 'Preempted', 'io'],
    ['prefill', 'Reading the own prompt', 'compute'], ['crowded', 'Reading it beside others’ prompts', 'data'],
    ['decode', 'Generating', 'main'], ['behind', 'Generating, longer for others’ prompts', 'comm']];

function causeTable(requests) {
    const of = (parts, part) => (parts.total ? parts[part] / parts.total : 0);
    const slow = requests.slow_from ? `the ${count(requests.slow.count)} that took ${time(requests.slow_from)} and more`
        : `the ${count(requests.slow.count)} that missed the limits`;
    return card('What their time went to', `Slow: ${slow}.`, table(['', 'All', 'Slow', ''], CAUSES.map(([part, name, colour]) => [
        name, percent(of(requests.all, part)), percent(of(requests.slow, part)), bar(of(requests.slow, part), colour)])));
}

function slowRequests(requests) {
    const most = (parts) => CAUSES.reduce((a, b) => (parts[b[0]] > parts[a[0]] ? b : a));
    return card('Slowest', null, table(['Id in the trace', 'Took', 'First token', 'Tokens', 'Steps', 'Preempted', 'Mostly'], requests.slowest.map((r) => [
        String(r.serial), time(r.parts.total), r.ttft ? time(r.ttft) : DASH, count(r.tokens),
        r.steps ? `${r.first_step} to ${r.first_step + r.steps - 1}` : DASH, count(r.preemptions), most(r.parts)[1]])));
}

function requestSection(report) {
    const requests = report.requests;
    if (!requests?.count) return;
    const node = section('requests', 'Requests', 'Those that have ended; their stages are among the spans.');
    const limits = [requests.ttft_limit && `first token ${time(requests.ttft_limit)}`, requests.tpot_limit && `${time(requests.tpot_limit)} a token`].filter(Boolean);
    node.append(card(null, null, facts([['Finished', count(requests.finished)], ['Cancelled', count(requests.cancelled)],
        ['Failed', count(requests.failed)], ['Tokens', count(requests.tokens)], ['Preemptions', count(requests.preemptions)],
        ['Goodput', limits.length ? `${percent(requests.goodput)} (${limits.join(', ')})` : '']])), causeTable(requests));
    if (requests.slowest?.length) node.append(slowRequests(requests));
}

function spanSection(report) {
    const rows = report.regions.filter((region) => region.span);
    if (!rows.length) return;
    const node = section('spans', 'Spans', 'What begins on one thread and ends on another; a mark counts the time since the one before.');
    const quantiles = (region) => ['mean', 'p50', 'p90', 'p99', 'max'].map((q) => (region.time.count ? time(region.time[q]) : DASH));
    node.append(card(null, null, table(['Name', 'Ended', 'Unfinished', 'Marks', 'Mean', 'p50', 'p90', 'p99', 'Largest'], rows.map((region) => [
        region.name, count(region.span.ended), count(region.span.unfinished), count(region.span.marks), ...quantiles(region)]))));
}

/* ---- threads, record accounting, and how far the figures can be trusted ---- */

function threadTable(threads) {
    const kinds = KINDS.filter((kind) => threads.some((thread) => thread.kinds[kind]));
    return card('Threads', 'Self time of their regions by kind.', table(['Thread', 'Regions', ...kinds, 'Dropped'], threads.slice(0, 64).map((thread) => [
        `${thread.name || 'unnamed'} (${thread.tid})`, count(thread.recorded), ...kinds.map((kind) => (thread.kinds[kind] ? time(thread.kinds[kind]) : DASH)),
        count(thread.dropped)])));
}

/* Reports of older versions have no parts but the collector. */
function cost(run, overhead) {
    const parts = [['recording', `recording (${amount(overhead.region_ns, 'ns')} per region)`], ['collector', 'in the collector thread'],
        ['callers', 'in pk_flush, pk_stop and threads that ended'], ['captures', 'writing captures'],
        ['readings', 'reading what costs asks for'], ['backends', 'in threads of backends']];
    return `${percent(overhead.share)} of the ${run.cpu ? 'CPU time' : 'run'}: ${parts.filter(([key]) => overhead[key])
        .map(([key, words]) => `${time(overhead[key])} ${words}`).join(', ')}`;
}

function environmentCard(e) {
    return card('Machine and build', null, facts([
        ['Processor', `${e.cpu || 'unknown'}, ${count(e.processors)} of them, ${e.architecture}`], ['Memory', amount(e.memory, 'bytes')],
        ['System', e.kernel], ['GPU', [e.gpu, e.driver && `driver ${e.driver}`].filter(Boolean).join(', ')], ['Command', e.command],
        ['Program', [e.program_compiler, e.build_id && `build ID ${e.build_id}`].filter(Boolean).join(', ')], ['perfkit', e.compiler],
        ['Working directory', e.commit && `commit ${e.commit.slice(0, 12)}${e.branch && ` on ${e.branch}`}`]]));
}

function detailSection(report, files) {
    const { run, counts, overhead, backends } = report, node = section('details', 'Details', null);
    if (report.threads.length) node.append(threadTable(report.threads));
    node.append(card('The run', null, facts([
        ['File', files.run], ['Program', run.program], ['Host', run.host], ['Process', run.pid ? `${run.pid}${rankOf(run) && `, ${rankOf(run)}`}` : ''],
        ['Trace', run.trace_path], ['Recorded', `${count(counts.recorded)} regions of ${count(counts.begun)}, ${count(counts.points)} points, on ${count(counts.threads)} threads`],
        ['Dropped', counts.dropped || counts.points_dropped ? `${count(counts.dropped)} regions, ${count(counts.points_dropped)} points` : 'nothing'],
        ['Not finite', counts.not_finite && `${count(counts.not_finite)} counter values, in no figure`],
        ['Clock', run.clock && `${run.clock}, steps of ${amount(run.clock_step_ns, 'ns')}, uncertain by ${amount(run.clock_uncertainty_ns, 'ns')}`],
        ['Cost of perfkit', overhead.total ? cost(run, overhead) : 'unknown'],
        ['perfkit', run.version],
    ])));
    if (report.environment) node.append(environmentCard(report.environment));
    if (backends.length) {
        node.append(card('Backends', null, table(['Backend', ['State', 'words']], backends.map((backend) => [
            backend.name, `${backend.live ? `live${backend.version && ` (${backend.version})`}` : 'off'}${backend.reason && `: ${backend.reason}`}`]))));
    }
}

/* ---- the data of the page, and its parts in order ---- */

function embedded(id) {
    const node = document.getElementById(id);
    return node ? JSON.parse(node.textContent) : null;
}

function build() {
    const report = embedded('run'), against = embedded('against'), files = embedded('files');
    head(report);
    if (report.capture) slowSection(report, embedded('timeline-data'));
    verdicts(report);
    compareSection(report, against, files);
    stepSection(report);
    if (!report.capture) slowSection(report, embedded('timeline-data'));
    regionSection(report, against);
    outsideSection(report);
    rooflineSection(report);
    eventSection(report);
    costSection(report);
    treeSection(report);
    requestSection(report);
    spanSection(report);
    gpuSection(report);
    commSection(report);
    counterSection(report);
    detailSection(report, files);
    document.documentElement.dataset.ready = 'yes';
}

build();

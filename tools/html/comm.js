/* comm.js - operations on communicators: bandwidth over size, and what was waited for. */

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
    const mean = (row) => row.bytes / row.time.count;
    const all = groups.flatMap(([name, rows], g) => rows.map((row) => ({ name, row, g, x: mean(row) }))).sort((a, b) => a.x - b.x);
    const data = [all.map((p) => p.x), ...groups.map((_, g) => all.map((p) => (p.g === g ? p.row.busbw.p50 : null)))];
    const format = (v) => amount(v, 'GB/s'), [low, high] = [all[0].x, all.at(-1).x];
    const most = Math.max(...all.map((p) => p.row.busbw.p50)), least = Math.min(...all.map((p) => p.row.busbw.p50));
    const log = most / least > 30;
    new Chart(node, {
        id: 'chart-comm', title: 'Bus bandwidth by size', height: 280,
        note: 'The median of each size class, at the mean size in it; bus bandwidth as nccl-tests count it.',
        x: { ticks: eachTick((v) => amount(v, 'bytes')), log: 10, range: () => [low / 2, high * 2] },
        y: { ticks: eachTick(format), ...(log ? { log: 10, range: () => [least / 2, most * 2] } : { range: fromZero }) },
        lines: groups.map(([name], g) => ({ name, colour: LINES[g], points: true, spanGaps: true, width: 2 })),
        data,
        legend: groups.map(([name], g) => ({ colour: LINES[g], shape: 'line', name })),
        tip: (i) => {
            const { row, name, g, x } = all[i];
            return { title: `${name}, ${amount(x, 'bytes')}`, rows: [['bus bandwidth', format(row.busbw.p50), LINES[g], 'line'],
                ['from', format(row.busbw.min)], ['to', format(row.busbw.max)], ['time, p50', time(row.time.p50)], ['calls', count(row.time.count)]] };
        },
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
    return card('Operations', 'Exposed is what the program’s threads waited for.', table(
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

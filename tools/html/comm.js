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

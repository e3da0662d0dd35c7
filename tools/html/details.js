/* details.js - threads, what became of what was recorded, and how far the figures can be trusted. */

function threadTable(threads) {
    const kinds = KINDS.filter((kind) => threads.some((thread) => thread.kinds[kind]));
    return card('Threads', 'Self time of their regions by kind.', table(['Thread', 'Regions', ...kinds, 'Dropped'], threads.slice(0, 64).map((thread) => [
        `${thread.name || 'unnamed'} (${thread.tid})`, count(thread.recorded), ...kinds.map((kind) => (thread.kinds[kind] ? time(thread.kinds[kind]) : DASH)),
        count(thread.dropped)])));
}

function detailSection(report, files) {
    const { run, counts, overhead, backends } = report, node = section('details', 'Details', null);
    if (report.threads.length) node.append(threadTable(report.threads));
    node.append(card('The run', null, facts([
        ['File', files.run], ['Program', run.program], ['Host', run.host], ['Process', run.pid ? `${run.pid}${rankOf(run) && `, ${rankOf(run)}`}` : ''],
        ['Trace', run.trace_path], ['Recorded', `${count(counts.recorded)} regions of ${count(counts.begun)}, ${count(counts.points)} points, on ${count(counts.threads)} threads`],
        ['Dropped', counts.dropped || counts.points_dropped ? `${count(counts.dropped)} regions, ${count(counts.points_dropped)} points` : 'nothing'],
        ['Clock', run.clock && `${run.clock}, steps of ${amount(run.clock_step_ns, 'ns')}, uncertain by ${amount(run.clock_uncertainty_ns, 'ns')}`],
        ['Cost of perfkit', overhead.region_ns ? `${amount(overhead.region_ns, 'ns')} per region, ${percent(overhead.share)} of the CPU time` : 'unknown'],
        ['perfkit', run.version],
    ])));
    if (backends.length) {
        node.append(card('Backends', null, table(['Backend', ['State', 'words']], backends.map((backend) => [
            backend.name, `${backend.live ? `live${backend.version && ` (${backend.version})`}` : 'off'}${backend.reason && `: ${backend.reason}`}`]))));
    }
}

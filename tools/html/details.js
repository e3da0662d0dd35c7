/* details.js - threads, record accounting, and how far the figures can be trusted. */

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

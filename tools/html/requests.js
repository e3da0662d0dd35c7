/* requests.js - spans, from begin to end on whatever threads, and requests: what they waited for. */

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

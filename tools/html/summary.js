/* summary.js - the head of the page: what ran, its figures in large, and the verdicts. */

const KINDS = ['compute', 'data', 'comm', 'io', 'wait', 'other', 'untracked'];

function stepsTotal(steps) {
    return KINDS.reduce((sum, kind) => sum + (steps.kinds?.[kind] ?? 0), 0);
}

function when(unix) {
    if (!unix) return '';
    return new Date(unix / 1e6).toISOString().slice(0, 19).replace('T', ' ') + ' UTC';
}

function rankOf(run) {
    return run.world_size > 0 ? `rank ${run.rank} of ${run.world_size}` : '';
}

function about(run) {
    return [run.host && `on ${run.host}`, rankOf(run), when(run.start_unix), `ran ${time(run.wall)}`,
        run.source !== 'session' && `made from ${run.source}`, !run.complete && 'did not end by itself']
        .filter(Boolean).join(' · ');
}

function tile(value, name) {
    return el('div', { class: 'tile' }, el('b', null, value), el('span', null, name));
}

function requestTiles(requests) {
    if (!requests?.count) return [];
    const limited = requests.ttft_limit || requests.tpot_limit, { queued, total } = requests.all;
    return [limited ? tile(percent(requests.goodput), `of ${count(requests.count)} requests within the limits`)
        : tile(count(requests.count), 'requests'), tile(percent(total ? queued / total : 0), 'of their time is queue')];
}

function tiles(report) {
    const { steps, gpus = [] } = report, out = [];
    if (steps.steady.count) {
        out.push(tile(time(steps.steady.p50), 'step, median'), tile(time(steps.steady.p99), 'step, p99'));
        if (steps.items) out.push(tile(rate(steps.items_per_second, ''), 'items per second'));
        if (steps.utilisation?.peak) out.push(tile(percent(steps.utilisation.mfu), 'MFU'));
        const total = stepsTotal(steps);
        const [kind] = KINDS.toSorted((a, b) => steps.kinds[b] - steps.kinds[a]);
        if (total) out.push(tile(percent(steps.kinds[kind] / total), `of the step is ${kind}`));
        out.push(tile(count(steps.count), 'steps'));
    }
    out.push(...requestTiles(report.requests));
    const busiest = gpus.map((gpu) => gpu.per_step).filter((s) => s?.busy && s?.step?.sum)
        .map((s) => s.busy.sum / s.step.sum);
    if (busiest.length) out.push(tile(percent(Math.max(...busiest)), gpus.length > 1 ? 'busiest GPU busy' : 'GPU busy'));
    if (!steps.steady.count) {
        out.push(tile(time(report.run.wall), 'run'), tile(count(report.counts.begun), 'regions recorded'));
    }
    return el('div', { class: 'tiles' }, out);
}

function head(report) {
    const { run } = report, name = (run.program || 'A run').split('/').pop();
    document.title = `${name} – perfkit report`;
    document.getElementById('head').append(el('h1', null, name), el('p', { class: 'meta' }, about(run)), tiles(report));
}

const SEVERITIES = { warning: 'Warning', good: 'Good', note: 'Note' };

function verdicts(report) {
    const list = report.verdicts.map((verdict) => el('li', { class: `verdict ${verdict.severity}` },
        el('span', { class: 'severity' }, SEVERITIES[verdict.severity] ?? verdict.severity),
        el('p', null, el('span', { class: 'name' }, verdict.name), ' ', typeset(verdict.text))));
    return section('verdicts', 'Verdicts', null, list.length ? el('ul', { class: 'verdicts' }, list)
        : el('p', { class: 'lead' }, 'There is nothing to say about this run.'));
}

/* A part of the page, and its link in the navigation. */
function section(id, title, lead, ...children) {
    const node = el('section', { id, 'aria-labelledby': `${id}-title` },
        el('h2', { id: `${id}-title` }, title), lead && el('p', { class: 'lead' }, lead), children);
    const nav = document.getElementById('nav');
    if (!nav.firstElementChild) nav.append(el('ul'));
    nav.firstElementChild.append(el('li', null, el('a', { href: `#${id}` }, title)));
    document.getElementById('main').append(node);
    return node;
}

/* slow.js - a step beside a usual one: what a capture is, where the difference is by path, and both
 * as a timeline. */

const PATHS_SHOWN = 12;

function captureReason(capture) {
    const words = { steps: 'steps that were asked for by number', every: 'one of every so many steps', cycle: 'a part of a cycle',
        request: 'asked for by pk capture', call: 'the program asked for it', hang: 'nothing moved any more' };
    if (!capture.slow) return `A capture: ${words[capture.reason] ?? capture.reason}${capture.text && `: ${capture.text}`}.`;
    return `A capture of a slow step: step ${count(capture.slow_step)} took ${time(capture.slow)}, `
        + `${(capture.slow / (capture.median || 1)).toFixed(2)} × the median of steps like it before, ${time(capture.median)}.`;
}

function captureFacts(capture) {
    const inside = capture.steps.filter((step) => step.captured), kernels = inside.filter((step) => step.kernels);
    const missing = [capture.cut && 'the run ended before its last step', capture.beginning_gone && 'the beginning of its first step',
        capture.full && 'its end, for capture_bytes_per_hour', capture.records_lost && `${count(capture.records_lost)} records of the run so far`];
    return facts([['Steps in the file', `${count(capture.first)} to ${count(capture.last)}, ${count(inside.length)} of them`],
        ['With kernels', kernels.length ? kernels.map((step) => step.index).join(', ') : 'none'],
        ['Missing', missing.filter(Boolean).join('; ') || 'nothing'],
        ['Refused before', capture.refused ? `${count(capture.refused)} captures` : '']]);
}

function difference(row) {
    const by = row.self - row.usual;
    return el('span', { class: by > 0 ? 'less' : by < 0 ? 'more' : '' }, signed(time(by), by));
}

function pathTable(rows, step, elsewhere) {
    return table([elsewhere ? 'Where: path' : 'Path on the thread that makes the steps', `Step ${step}`, 'Usual', 'Difference'],
        rows.map((row) => [[swatch(row.kind), elsewhere ? `${row.where}: ${row.path}` : row.path || 'outside every region'],
            time(row.self), time(row.usual), difference(row)]));
}

function pathList(rows, step, elsewhere) {
    const host = el('div');
    const show = (all) => {
        const shown = all ? rows : rows.slice(0, PATHS_SHOWN);
        host.replaceChildren(pathTable(shown, step, elsewhere));
        if (shown.length < rows.length) host.append(el('button', { type: 'button', onclick: () => show(true) }, `Show all ${count(rows.length)}`));
    };
    show(false);
    return host;
}

/* The paths that make most of the difference. */
function reasons(beside) {
    const all = beside.took - beside.usual, own = beside.paths.filter((row) => !row.where);
    const telling = own.filter((row) => row.self - row.usual >= 0.1 * Math.abs(all)).slice(0, 3);
    if (!telling.length) return 'No path stands out.';
    const rest = all - telling.reduce((sum, row) => sum + row.self - row.usual, 0);
    return `${telling.map((row) => `${row.path || 'outside every region'} ${signed(time(row.self - row.usual), 1)}`).join(', ')}; all else ${signed(time(rest), rest)}.`;
}

const FILES = { 'io.read': ['read', ''], 'io.written': ['wrote', ''], 'io.device_read': ['had', ' from devices'],
    'io.device_written': ['dirtied', ' for devices'], 'io.operations': ['made', ' calls'] };

/* What the process read and wrote in it that usual steps do not. */
function filesOf(beside) {
    const telling = (beside.io ?? []).filter((row) => row.telling && FILES[row.name]);
    if (!telling.length) return null;
    const of = (row, value) => (row.name === 'io.operations' ? count(Math.round(value)) : bytes(value)), steps = telling[0].steps;
    return `In it${steps > 1 ? ` and the ${count(steps - 1)} before it` : ''} the process ${telling.map((row) => `${FILES[row.name][0]} ${of(row, row.value)}${
        FILES[row.name][1]} (usually ${of(row, row.usual * row.steps)})`).join(', ')}.`;
}

function besideCard(beside) {
    const own = beside.paths.filter((row) => !row.where), others = beside.paths.filter((row) => row.where);
    return card(`Why step ${beside.step} took ${time(beside.took)} and not ${time(beside.usual)}`, null,
        el('p', { class: 'why' }, reasons(beside)),
        filesOf(beside) && el('p', { class: 'why' }, filesOf(beside)),
        el('p', null, `Self time beside the median of ${count(beside.usual_count)} usual ${beside.usual_count === 1 ? 'step' : 'steps'} of the file.`),
        pathList(own, beside.step, false),
        others.length > 0 && el('h4', null, 'Meanwhile elsewhere'), others.length > 0 && pathList(others, beside.step, true));
}

function slowSection(report, timeline) {
    const { capture, beside } = report;
    if (!capture && !beside) return;
    const title = capture?.slow ? 'The slow step' : 'The longest step';
    const node = section('slow', title, capture ? captureReason(capture) : null, capture && card(null, null, captureFacts(capture)));
    if (beside?.usual_count) node.append(besideCard(beside));
    if (!timeline?.steps.length) return;
    const host = card(timeline.steps.length > 1 ? 'The step and a usual one, at one scale' : 'The step', null);
    node.append(host);
    new Timeline(host, timeline);
}

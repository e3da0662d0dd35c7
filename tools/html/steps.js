/* tools/html/steps.js - steps: the slow one, its timeline, beside usual ones, beside another run's. */

/* ---- two steps as flame charts at one scale ---- */

/* All threads and devices, drawn on a canvas. Mouse, finger and keys choose a slice, which is told in words below; zoom
 * and pan move both. */

const ROW = 16, LANE_GAP = 20, SIDE = 6, SORTS = ['steps', 'thread', 'library', 'device'];

/* Lanes in order, each with its place in both charts. */
function lanesOf(data) {
    const rows = data.lanes.map(() => 1);
    for (const [, lane, row] of data.slices) rows[lane] = Math.max(rows[lane], row + 1);
    const order = data.lanes.map((lane, i) => i).toSorted((a, b) => SORTS.indexOf(data.lanes[a].sort) - SORTS.indexOf(data.lanes[b].sort) || a - b);
    let top = 0;
    const lanes = [];
    for (const i of order) {
        lanes[i] = { name: data.lanes[i].name, sort: data.lanes[i].sort, top: top + LANE_GAP, rows: rows[i] };
        top += LANE_GAP + rows[i] * ROW + 4;
    }
    return { lanes, height: top };
}

function sliceOf(data, [step, lane, row, start, length, name, calls]) {
    const [kind, text] = name < 0 ? ['untracked', 'several'] : data.names[name];
    const device = data.lanes[lane].sort === 'device';
    return { step, lane, row, start, length, calls, kind, text, colour: device && kind === 'other' ? 'main' : kind };
}

class Timeline {
    constructor(parent, data) {
        this.data = data;
        Object.assign(this, lanesOf(data));
        this.slices = data.steps.map((_, step) => data.slices.filter((s) => s[0] === step).map((s) => sliceOf(data, s)));
        this.longest = Math.max(...data.steps.map((step) => step.took), 1);
        this.view = [0, this.longest];
        this.chosen = null;
        this.build(parent);
        new ResizeObserver(() => this.draw()).observe(this.panes[0].canvas);
        this.draw();
        charts.push({ plot: { redraw: () => this.draw() } });
    }

    build(parent) {
        const button = (text, name, act) => el('button', { type: 'button', 'aria-label': name, onclick: act }, text);
        this.told = el('p', { class: 'told', 'aria-live': 'polite' });
        this.panes = this.data.steps.map((step, i) => this.pane(step, i));
        this.figure = el('figure', { id: 'timeline', class: 'timeline' },
            el('div', { class: 'tools' }, button('+', 'Zoom in', () => this.zoom(0.5)), button('−', 'Zoom out', () => this.zoom(2)),
                button('Whole steps', 'Whole steps', () => this.show(0, this.longest))),
            this.panes.map((pane) => [pane.title, pane.canvas]), this.told, this.notes());
        parent.append(this.figure);
        this.tell();
    }

    pane(step, i) {
        const words = i === 0 ? `Step ${step.index}: ${time(step.took)}` : `Step ${step.index}, a usual one: ${time(step.took)}`;
        const canvas = el('canvas', { tabindex: 0, role: 'group', 'aria-label': `${words}. Arrow keys choose a slice, plus and minus zoom.` });
        canvas.style.height = `${this.height}px`;
        canvas.addEventListener('keydown', (event) => this.key(i, event));
        canvas.addEventListener('pointermove', (event) => this.point(i, event));
        canvas.addEventListener('pointerdown', (event) => this.press(i, event));
        for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { this.drag = null; });
        canvas.addEventListener('wheel', (event) => this.wheel(i, event), { passive: false });
        return { canvas, title: el('h4', null, words) };
    }

    notes() {
        const { shortest, merged, left_out: out } = this.data, said = [];
        if (merged) said.push(`${count(merged)} slices shorter than ${time(shortest)} are drawn together with their neighbours.`);
        if (out) said.push(`${count(out)} slices are not drawn: too deep, or on one of too many tracks.`);
        return said.length ? el('p', { class: 'note' }, said.join(' ')) : null;
    }

    /* ---- places ---- */

    width(i) {
        return Math.max(1, this.panes[i].canvas.clientWidth - 2 * SIDE);
    }

    xOf(i, ns) {
        return SIDE + (ns - this.view[0]) / (this.view[1] - this.view[0]) * this.width(i);
    }

    nsAt(i, x) {
        return this.view[0] + (x - SIDE) / this.width(i) * (this.view[1] - this.view[0]);
    }

    yOf(slice) {
        return this.lanes[slice.lane].top + slice.row * ROW;
    }

    find(i, x, y) {
        const at = this.nsAt(i, x), near = (this.view[1] - this.view[0]) / this.width(i);
        return this.slices[i].findLast((s) => y >= this.yOf(s) && y < this.yOf(s) + ROW && at >= s.start - near && at <= s.start + s.length + near);
    }

    /* ---- what moves ---- */

    show(from, to) {
        const length = Math.min(Math.max(to - from, this.longest / 1e6, 10), this.longest);
        const start = Math.min(Math.max(from, 0), this.longest - length);
        this.view = [start, start + length];
        this.draw();
    }

    zoom(by, at) {
        const [from, to] = this.view, middle = at ?? (this.chosen ? this.chosen.start + this.chosen.length / 2 : (from + to) / 2);
        const around = Math.min(Math.max(middle, from), to);
        this.show(around - (around - from) * by, around + (to - around) * by);
    }

    wheel(i, event) {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.nsAt(i, event.offsetX));
    }

    press(i, event) {
        this.drag = { x: event.clientX, view: this.view };
        this.point(i, event);
    }

    point(i, event) {
        if (this.drag && event.buttons && Math.abs(event.clientX - this.drag.x) > 3) {
            const [from, to] = this.drag.view, by = (event.clientX - this.drag.x) / this.width(i) * (to - from);
            this.show(from - by, to - by);
            return;
        }
        const found = this.find(i, event.offsetX, event.offsetY);
        if (found !== this.chosen) this.choose(found ?? null);
    }

    choose(slice) {
        this.chosen = slice;
        if (slice) {
            const [from, to] = this.view, end = slice.start + slice.length;
            if (end < from || slice.start > to) this.show(slice.start - (to - from) / 2, slice.start + (to - from) / 2);
        }
        this.tell();
        this.draw();
    }

    key(i, event) {
        const moves = { ArrowRight: 1, ArrowLeft: -1 }, floors = { ArrowDown: 1, ArrowUp: -1 };
        if (event.key in moves) this.choose(this.beside(i, moves[event.key]));
        else if (event.key in floors) this.choose(this.above(i, floors[event.key]));
        else if (event.key === 'Home') this.choose(this.slices[i][0] ?? null);
        else if (event.key === '+' || event.key === '=') this.zoom(0.5);
        else if (event.key === '-') this.zoom(2);
        else if (event.key === 'Escape') {
            this.choose(null);
            this.show(0, this.longest);
        } else return;
        event.preventDefault();
    }

    /* The next one of the same row; of a pane in which nothing is chosen the first. */
    beside(i, by) {
        const now = this.chosen;
        if (!now || now.step !== i) return this.slices[i][0] ?? null;
        const row = this.slices[i].filter((s) => s.lane === now.lane && s.row === now.row);
        return row[row.indexOf(now) + by] ?? now;
    }

    /* What is around it or in it; then the next lane. */
    above(i, by) {
        const now = this.chosen;
        if (!now || now.step !== i) return this.slices[i][0] ?? null;
        const y = this.yOf(now), end = now.start + now.length;
        const others = this.slices[i].filter((s) => (this.yOf(s) - y) * by > 0 && (s.lane !== now.lane || (s.start < end && s.start + s.length > now.start)));
        const nearest = Math.min(...others.map((s) => Math.abs(this.yOf(s) - y)));
        return others.find((s) => Math.abs(this.yOf(s) - y) === nearest) ?? now;
    }

    /* ---- words ---- */

    tell() {
        const s = this.chosen;
        if (!s) {
            this.told.textContent = 'Point at a slice, or focus a chart and use the arrow keys; drag or + and − to move and zoom.';
            return;
        }
        const what = s.calls > 1 ? `${count(s.calls)} slices${s.text === 'several' ? '' : ` of ${shortened(s.text)}`}, together` : `${shortened(s.text)},`;
        this.told.replaceChildren(swatch(s.colour), `${what} ${time(s.length)} on ${this.lanes[s.lane].name}, ${time(s.start)} after the step’s beginning`);
    }

    /* ---- drawing ---- */

    draw() {
        this.panes.forEach((pane, i) => this.paint(pane.canvas, i));
    }

    paint(canvas, i) {
        const ratio = devicePixelRatio, ctx = canvas.getContext('2d');
        canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
        canvas.height = Math.round(this.height * ratio);
        ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
        ctx.font = '12px system-ui, sans-serif';
        ctx.textBaseline = 'middle';
        const end = this.xOf(i, this.data.steps[i].took);
        ctx.fillStyle = colour('shade');
        if (end < canvas.clientWidth) ctx.fillRect(end, 0, canvas.clientWidth - end, this.height);
        for (const lane of this.lanes) {
            ctx.fillStyle = colour('muted');
            ctx.fillText(lane.name, SIDE, lane.top - LANE_GAP / 2 + 1, canvas.clientWidth - 2 * SIDE);
        }
        for (const slice of this.slices[i]) this.box(ctx, i, slice);
    }

    box(ctx, i, s) {
        const from = Math.max(this.xOf(i, s.start), 0), to = Math.min(this.xOf(i, s.start + s.length), this.width(i) + 2 * SIDE);
        if (to < 0 || from > this.width(i) + 2 * SIDE) return;
        const y = this.yOf(s), wide = Math.max(to - from, 1);
        ctx.fillStyle = colour(s.colour);
        ctx.globalAlpha = s.calls > 1 ? 0.55 : 0.85;
        ctx.fillRect(from, y, wide > 2 ? wide - 0.5 : wide, ROW - 1);
        ctx.globalAlpha = 1;
        if (s === this.chosen) {
            ctx.strokeStyle = colour('ink');
            ctx.lineWidth = 2;
            ctx.strokeRect(from, y, wide, ROW - 1);
        }
        if (wide > 34) this.name(ctx, s, from, y, wide);
    }

    name(ctx, s, from, y, wide) {
        ctx.save();
        ctx.beginPath();
        ctx.rect(from, y, wide - 4, ROW);
        ctx.clip();
        ctx.fillStyle = colour('surface');
        ctx.fillText(s.calls > 1 ? `${s.calls} × ${s.text}` : s.text, from + 4, y + ROW / 2);
        ctx.restore();
    }
}

/* ---- a step beside a usual one ---- */

/* What a capture is, where the difference is by path, and both as a timeline. */

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

/* ---- samples of the step: functions, and who called them ---- */

const FLAME_ROW = 22, FLAME_LEAST = 0.004, FLAME_STRONGEST = 45;

/* From the outermost on downward, as wide as the step had a processor in it. Preorder: what is inside begins where that does. */
function flameBoxes({ names, nodes }) {
    const all = nodes[0][2], from = [0], boxes = [];
    for (const [depth, name, now, usual] of nodes) {
        const left = from[depth] ?? 0, more = Math.max(0, now - usual) / all;
        from[depth] = left + now;
        from[depth + 1] = left;
        if (depth === 0 || now < FLAME_LEAST * all) continue;
        const box = el('div', { title: `${names[name]}: ${time(now)}, usually ${time(usual)}` }, names[name]);
        box.style.left = `${(100 * left) / all}%`;
        box.style.width = `${(100 * now) / all}%`;
        box.style.top = `${(depth - 1) * FLAME_ROW}px`;
        box.style.backgroundColor = `color-mix(in srgb, var(--against) ${Math.round(FLAME_STRONGEST * Math.sqrt(more))}%, var(--surface))`;
        boxes.push([depth, box]);
    }
    return boxes;
}

function flameCard(flame, step) {
    if (!flame?.nodes.length || !flame.nodes[0][2]) return null;
    const boxes = flameBoxes(flame), rows = Math.max(...boxes.map(([depth]) => depth));
    const chart = el('div', { class: 'flame' }, boxes.map(([, box]) => box));
    chart.style.height = `${rows * FLAME_ROW}px`;
    const note = `By samples, ${time(flame.nodes[0][2])} of them: regions, and in them functions, each below who called it. `
        + 'The stronger its colour, the more of it than in usual steps.';
    return card(`Where step ${step} had its processor`, note, chart);
}

/* What the whole run had a processor for that no region covers. */
const OUTSIDE_SHOWN = 25;

function placeName(name, place) {
    return name || place.split('/').pop();
}

function outsideSection({ outside }) {
    if (!outside?.functions.length) return;
    section('outside', 'Outside regions', `${percent(outside.outside / outside.sampled)} of the CPU time that was sampled is in no region: these functions had it.`,
        card(null, null, table(['Function', 'Who called it', 'Samples', 'CPU time', 'Share'], outside.functions.slice(0, OUTSIDE_SHOWN).map((row) => [
            placeName(row.function, row.place), placeName(row.caller, row.caller_place), count(row.samples), time(row.ns), percent(row.ns / outside.sampled)]))));
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
    node.append(flameCard(timeline.flame, beside.step) ?? '');
}

/* ---- this run beside another one. Two runs say nothing certain about small differences ---- */

function change(now, then) {
    if (!known(now) || !known(then) || then === 0) return DASH;
    const share = now / then - 1;
    return signed(percent(share), share);
}

const SHORT_FROM = 0.05, WATCHED_LEAST = 5e7;

/* The share of its time in which the stepping thread was ready and had no processor. */
function withoutProcessor(report) {
    const { observed, ready } = report.steps.processor ?? {};
    return observed >= WATCHED_LEAST ? ready / observed : 0;
}

let processorsShort = false; /* in either run: then a change has no colour */

/* A figure where less is better, or more is. */
function judged(now, then, moreIsBetter) {
    const text = change(now, then), worse = moreIsBetter ? now < then : now > then;
    return processorsShort || Math.abs(now / then - 1) < 0.02 || text === DASH ? text : el('span', { class: worse ? 'less' : 'more' }, text);
}

function figuresBeside(a, b) {
    const rows = [
        ['Step, median', a.steps.steady.p50, b.steps.steady.p50, time], ['Step, p95', a.steps.steady.p95, b.steps.steady.p95, time],
        ['Step, p99', a.steps.steady.p99, b.steps.steady.p99, time], ['Items per second', a.steps.items_per_second, b.steps.items_per_second, (v) => rate(v, ''), true],
        ['Run', a.run.wall, b.run.wall, time], ['CPU time', a.run.cpu, b.run.cpu, time]];
    return table(['Figure', 'This run', 'Other run', 'Change'], rows.filter(([, x, y]) => x && y)
        .map(([name, x, y, format, more]) => [name, format(x), format(y), judged(x, y, more)]));
}

function perStep(report, kind) {
    return report.steps.broken_down ? report.steps.kinds[kind] / report.steps.broken_down : 0;
}

function kindsBeside(a, b) {
    const kinds = KINDS.filter((kind) => perStep(a, kind) || perStep(b, kind));
    return table(['Time per step', 'This run', 'Other run', 'Difference'], kinds.map((kind) => {
        const now = perStep(a, kind), then = perStep(b, kind);
        return [[swatch(kind), kind], time(now), time(then), signed(time(now - then), now - then)];
    }));
}

/* A p99 of few calls is the largest or the second largest of them. */
function tails(region, other) {
    return Math.min(region.time.count, other.time.count) >= 300;
}

function regionsBeside(a, b) {
    const others = new Map(b.regions.map((region) => [`${region.kind} ${region.name}`, region]));
    const rows = a.regions.map((region) => ({ region, other: others.get(`${region.kind} ${region.name}`) })).filter((row) => row.other);
    const gone = b.regions.filter((region) => !a.regions.some((mine) => mine.name === region.name && mine.kind === region.kind));
    const spent = (region) => (region.step_self.count ? region.step_self.mean : region.time.mean);
    rows.sort((x, y) => Math.abs(spent(y.region) - spent(y.other)) - Math.abs(spent(x.region) - spent(x.other)));
    return [table(['Region', 'p50', 'Other', 'Change', 'p99', 'Other', 'Change'], rows.slice(0, 20).map(({ region, other }) => [
        [swatch(region.kind), region.name], time(region.time.p50), time(other.time.p50), judged(region.time.p50, other.time.p50),
        time(region.time.p99), time(other.time.p99), tails(region, other) ? judged(region.time.p99, other.time.p99) : DASH])),
    gone.length > 0 && el('p', null, `Only in the other run: ${gone.slice(0, 12).map((region) => region.name).join(', ')}${gone.length > 12 ? ' …' : ''}`)];
}

/* At the same place in their loops. */
function stepsBeside(a, b, node) {
    const rows = (report) => report.steps.series.map((row) => ({ x: row.index - report.steps.series[0].index, y: median(row), row }));
    const mine = rows(a), theirs = rows(b), at = new Map();
    for (const p of mine) at.set(p.x, { mine: p });
    for (const p of theirs) at.set(p.x, { ...at.get(p.x), theirs: p });
    const x = [...at.keys()].sort((p, q) => p - q);
    const top = 1.15 * Math.max(a.steps.steady.p99, b.steps.steady.p99, a.steps.steady.p50 * 1.2);
    new Chart(node, {
        id: 'chart-compare', title: 'Step time of both runs', note: 'Counted from the first step of each.', height: 260,
        x: { ticks: eachTick(count), axis: whole }, y: { ticks: timeTicks, range: () => [0, top] },
        lines: [{ name: 'other run', colour: 'against', spanGaps: true }, { name: 'this run', colour: 'main', spanGaps: true }],
        data: [x, x.map((i) => at.get(i).theirs?.y ?? null), x.map((i) => at.get(i).mine?.y ?? null)],
        legend: [{ colour: 'main', shape: 'line', name: 'this run' }, { colour: 'against', shape: 'line', name: 'other run' }],
        tip: (i) => ({ title: `Step ${x[i]}`, rows: [['this run', time(at.get(x[i]).mine?.y), 'main', 'line'], ['other run', time(at.get(x[i]).theirs?.y), 'against', 'line']] }),
        table: { head: ['Step', 'This run', 'Other run'], row: (i) => [x[i], time(at.get(x[i]).mine?.y), time(at.get(x[i]).theirs?.y)] },
    });
}

function compareSection(report, against, files) {
    if (!against) return;
    const [mine, other] = [report, against].map(withoutProcessor);
    processorsShort = Math.max(mine, other) >= SHORT_FROM;
    const short = processorsShort ? `Processors were short: there was none for ${percent(mine)} of the time in this run, and for ${percent(other)} in the other. `
        + 'What differs may be that alone. ' : '';
    const node = section('comparison', 'Comparison', `${short}This run is ${files.run}, the other one ${files.against}. One run of each shows what is different, `
        + 'not whether a few percent are more than chance; pk report --against without --html has the interval of each.');
    node.append(card('The runs', `The other one: ${about(against.run)}`, figuresBeside(report, against)));
    if (report.steps.series.length && against.steps.series.length) {
        const pair = el('div', { class: 'pair' }), host = card(null, null);
        node.append(pair);
        pair.append(host, card('By kind', null, kindsBeside(report, against)));
        stepsBeside(report, against, host);
    }
    if (report.regions.length && against.regions.length) {
        node.append(card('Regions of both, the largest difference first', null, regionsBeside(report, against)));
    }
    node.append(eventsBeside(report, against) ?? '');
}

/* ---- the training loop: how long each step took, what of, and why the slow ones did ---- */

function stepName(row) {
    return row.steps > 1 ? `Steps ${row.index}–${row.index + row.steps - 1}` : `Step ${row.index}`;
}

function median(row) {
    return row.median || row.duration / row.steps;
}

function bucketed(series) {
    const most = Math.max(...series.map((row) => row.steps));
    return most > 1 ? `Each point stands for ${most} steps: their median, and from the shortest to the longest.` : null;
}

/* The slowest steady steps, as far as they are out of the ordinary. */
function outliers(steps) {
    return steps.slowest.filter((step) => step.duration > 1.25 * steps.steady.p50);
}

/* Unless it is nearly all there is. */
function usualRange(dist) {
    const apart = dist.p99 - dist.min || dist.p99 * 0.02;
    return dist.max > dist.p99 + apart || dist.min > 0.4 * dist.p99 ? [Math.max(0, dist.min - 0.3 * apart), dist.p99 + 0.5 * apart] : null;
}

function stepTimes(report, node) {
    const { steps } = report, { series } = steps;
    const merged = series.some((row) => row.steps > 1);
    const slow = new Map(outliers(steps).map((step) => [step.index, step]));
    const first = series[0].index, x = series.map((row) => row.index);
    const rings = [...slow.values()].map((step) => {
        const row = series.findLast((entry) => entry.index <= step.index);
        return { x: row.index, y: step.duration };
    });
    const top = 1.15 * Math.max(steps.steady.max, steps.steady.p50);
    new Chart(node, {
        id: 'chart-steps', title: 'Step time', note: bucketed(series), height: 300,
        x: { ticks: eachTick(count), axis: whole },
        y: { ticks: timeTicks, range: () => [0, top] },
        lines: [
            ...(merged ? [{ name: 'longest', colour: 'main', fill: 'band', width: 0 },
                { name: 'shortest', colour: 'main', fill: 'surface', width: 0 }] : []),
            { name: 'median', colour: 'main', points: series.length < 80 },
        ],
        data: [x, ...(merged ? [series.map((row) => row.longest), series.map((row) => row.shortest ?? 0)] : []), series.map(median)],
        spans: steps.warmup ? [{ from: first - 0.5, to: first + steps.warmup }] : [],
        fit: usualRange(steps.steady),
        marks: [{ y: steps.steady.p50, text: `p50 ${time(steps.steady.p50)}`, below: true },
            { y: steps.steady.p99, text: `p99 ${time(steps.steady.p99)}` }],
        rings,
        above: series.map((row) => ({ x: row.index, y: row.longest })), aboveWhat: merged ? 'point' : 'step',
        legend: [
            { colour: 'main', shape: 'line', name: merged ? 'median' : 'step' },
            ...(merged ? [{ colour: 'band', name: 'shortest to longest' }] : []),
            ...(steps.warmup ? [{ colour: 'idle', name: `warm-up, ${count(steps.warmup)} ${steps.warmup === 1 ? 'step' : 'steps'}, in no figure.` }] : []),
            ...(rings.length ? [{ colour: 'data', shape: 'ring', name: `slowest, ${rings.length} above 1.25 × the median` }] : []),
        ],
        tip: (i) => {
            const row = series[i], found = [...slow.values()].filter((s) => s.index >= row.index && s.index < row.index + row.steps);
            return { title: stepName(row) + (row.index - first < steps.warmup ? ', warm-up' : ''), rows: [
                [merged ? 'median' : 'took', time(median(row)), 'main', 'line'],
                ...(merged ? [['shortest', time(row.shortest)], ['longest', time(row.longest)]] : []),
                ...found.flatMap((s) => s.parts.slice(0, 3).map((part) => [part.name, signed(time(part.self - part.usual), part.self - part.usual), part.kind])),
            ] };
        },
        table: { head: ['Step', 'Steps', 'Median', 'Shortest', 'Longest', 'Items'], row: (i) => {
            const row = series[i];
            return [row.index, row.steps, time(median(row)), time(row.shortest || row.duration), time(row.longest), count(row.items)];
        } },
    });
}

function present(steps) {
    return KINDS.filter((kind) => steps.kinds[kind] > 0 || steps.series.some((row) => row.kinds[kind] > 0));
}

function stepKinds(report, node) {
    const { steps } = report, { series } = steps, kinds = present(steps);
    const x = series.map((row) => row.index), sums = series.map(() => 0), layers = [];
    for (const kind of kinds) {
        layers.push(series.map((row, i) => (sums[i] += row.kinds[kind] / row.steps)));
    }
    const last = series.at(-1);
    x.push(last.index + last.steps);
    layers.forEach((layer) => layer.push(layer.at(-1)));
    const highest = Math.max(...sums.filter((_, i) => series[i].index - series[0].index >= steps.warmup), steps.steady.p50);
    const top = 1.08 * (highest < 3 * steps.steady.p50 ? highest : Math.max(steps.steady.p99, steps.steady.p50));
    const all = 1.08 * Math.max(...sums);
    new Chart(node, {
        id: 'chart-kinds', title: 'What each step went to', height: 300,
        note: 'On the thread that makes the steps, by the kind of its regions' + (last.index - series[0].index >= 4096 ? '; the mean of the steps that a column stands for.' : '.'),
        x: { ticks: eachTick(count), axis: whole },
        y: { ticks: timeTicks, range: () => [0, Math.max(all, top)] },
        fit: all > top ? [0, top] : null, fitted: true,
        above: series.map((row, i) => ({ x: row.index + row.steps / 2, y: sums[i] })), aboveWhat: last.steps > 1 ? 'column' : 'step',
        lines: kinds.map((kind) => ({ name: kind, colour: kind, fill: kind, width: 0, stepped: true })).reverse(),
        data: [x, ...layers.reverse()],
        legend: kinds.toReversed().map((kind) => ({ colour: kind, name: kind })),
        tip: (i) => series[i] && ({ title: stepName(series[i]), rows: kinds.filter((kind) => series[i].kinds[kind]).reverse()
            .map((kind) => [kind, `${time(series[i].kinds[kind] / series[i].steps)} · ${percent(series[i].kinds[kind] / series[i].duration)}`, kind]) }),
        table: { head: ['Step', ...kinds], rows: series.length,
            row: (i) => [series[i].index, ...kinds.map((kind) => time(series[i].kinds[kind] / series[i].steps))] },
    });
}

function kindShares(steps) {
    const total = stepsTotal(steps), counted = steps.broken_down || 1;
    const kinds = present(steps).toSorted((a, b) => steps.kinds[b] - steps.kinds[a]);
    return card('Where the steady steps’ time went', null, table(['Kind', 'Per step', 'Share'], kinds.map((kind) => [
        [swatch(kind), kind], time(steps.kinds[kind] / counted),
        [percent(steps.kinds[kind] / total), bar(steps.kinds[kind] / total, kind)]])));
}

function slowSteps(steps) {
    const usual = steps.steady.p50, slow = steps.slowest.filter((step) => step.duration > 1.1 * usual);
    if (!slow.length) return null;
    return card('The slowest steps, and what was longer in them than usual', null,
        table([['Step', 'tight'], 'Took', 'Usual', ['Longer than usual', 'words']], slow.map((step) => [
            count(step.index), time(step.duration), `${(step.duration / usual).toFixed(2)} ×`,
            step.parts.slice(0, 4).map((part) => el('span', { class: 'part' }, swatch(part.kind), `${part.name} `,
                el('b', null, signed(time(part.self - part.usual), part.self - part.usual))))])));
}

/* Steps announced as different, and what lies between steps. */
function otherSteps(report) {
    const { step_kinds: kinds = [], between } = report.steps;
    const rows = [...kinds, ...(between ? [{ ...between, name: 'between steps' }] : [])];
    if (!rows.length) return null;
    return card('In none of these figures', null,
        table(['', 'Count', 'p50', 'Longest', 'In all', 'Of the run'], rows.map((row) => [
            row.name, count(row.time.count), time(row.time.p50), time(row.time.max), time(row.time.sum),
            percent(row.time.sum / report.run.wall)])));
}

/* A run without steps: the time of its main thread, or of the busiest where that one has no regions. */
function wholeRun(report) {
    const { whole_run: run } = report;
    const kinds = KINDS.filter((kind) => run.kinds[kind] > 0).toSorted((a, b) => run.kinds[b] - run.kinds[a]);
    section('steps', 'Whole run, without steps', null).append(
        card(`Where the time of its ${run.busiest ? 'busiest' : 'main'} thread went`, run.thread, table(['Kind', 'In all', 'Share'], kinds.map((kind) => [
            [swatch(kind), kind], time(run.kinds[kind]), [percent(run.kinds[kind] / run.time), bar(run.kinds[kind] / run.time, kind)]]))));
}

function stepSection(report) {
    const { steps } = report;
    if (report.whole_run) wholeRun(report);
    if (!steps.series.length) return;
    const node = section('steps', 'Steps', null), times = card(null, null);
    node.append(times);
    stepTimes(report, times);
    if (stepsTotal(steps)) {
        const pair = el('div', { class: 'pair' }), kinds = card(null, null);
        node.append(pair);
        pair.append(kinds, kindShares(steps));
        stepKinds(report, kinds);
    }
    memoryCharts(report, node);
    node.append(slowSteps(steps) ?? '', otherSteps(report) ?? '');
}

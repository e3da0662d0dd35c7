/* tools/html/chart.js - charts, and the head of a page. */

/* ---- one chart ---- */

/* uPlot draws it; around it a title, a legend, a tooltip that mouse, finger and arrow keys move, and a table that says
 * the same. */

const charts = [];
const TABLE_MOST = 200;
const MOST = 1e24;
let palette = null;

/* A colour of style.css, as it is now: light, dark or printing. */
function colour(name) {
    palette ??= getComputedStyle(document.documentElement);
    return palette.getPropertyValue('--' + name).trim();
}

function redrawAll() {
    palette = null;
    for (const chart of charts) chart.plot.redraw(false);
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawAll);
addEventListener('beforeprint', () => { document.documentElement.classList.add('printing'); redrawAll(); });
addEventListener('afterprint', () => { document.documentElement.classList.remove('printing'); redrawAll(); });

/* The widest of the labels, in CSS pixels. */
function axisWidth(u, values, index, cycle) {
    if (cycle > 1) return u.axes[index]._size;
    u.ctx.font = u.axes[index].font[0];
    const widest = (values ?? []).reduce((most, text) => Math.max(most, u.ctx.measureText(text ?? '').width), 0);
    return Math.ceil(widest / devicePixelRatio) + 16;
}

/* Powers of ten, and 2 and 5 of each where there are few. */
function logSplits(u, axis, min, max) {
    const out = [], few = Math.log10(max / min) < 3;
    for (let e = Math.floor(Math.log10(min)); e <= Math.log10(max); e++) {
        for (const digit of few ? [1, 2, 5] : [1]) {
            const at = Number(`${digit}e${e}`);
            if (at >= min && at <= max) out.push(at);
        }
    }
    return out;
}

function axisOf(spec, more) {
    return {
        ...(spec.log ? { splits: logSplits, filter: (u, splits) => splits } : {}),
        stroke: () => colour('muted'),
        grid: { stroke: () => colour('grid'), width: 1 },
        ticks: { show: false },
        font: '12px system-ui, sans-serif',
        gap: 6,
        values: (u, splits) => spec.ticks(splits),
        ...more,
    };
}

/* Reports may hold anything: an axis is always one that can be divided. */
function sane([low, high], log) {
    if (!known(low) || !known(high) || Math.max(Math.abs(low), Math.abs(high)) > MOST) return log ? [1, 10] : [0, 1];
    if (log && !(low > 0)) return [high > 0 ? high / 1e3 : 1, high > 0 ? high : 10];
    if (high - low > Math.abs(high) * 1e-12) return [low, high];
    return log ? [low / 2, low * 2] : [low - (Math.abs(low) * 0.1 || 1), low + (Math.abs(low) * 0.1 || 1)];
}

/* A range of its own is that of all values; uPlot asks for what a reader zooms to, too, and gets it. */
function scaleOf(axis, zooms) {
    const isAll = (u, min, max) => !zooms || (min === u.data[0][0] && max === u.data[0].at(-1));
    const range = (u, min, max) => sane(axis.range && isAll(u, min, max) ? axis.range(u, min, max) : [min, max], axis.log);
    return { time: false, range, ...(axis.log ? { distr: 3, log: axis.log } : {}) };
}

/* What can be drawn of it; false if that is nothing. */
function cleaned([x, ...lines]) {
    if (!x.length || !x.every((v, i) => known(v) && Math.abs(v) <= MOST && (i === 0 || v >= x[i - 1]))) return false;
    return [x, ...lines.map((line) => line.map((v) => (known(v) && Math.abs(v) <= MOST ? v : null)))];
}

function seriesOf(line) {
    return {
        label: line.name,
        scale: line.scale ?? 'y',
        stroke: line.width === 0 ? undefined : () => colour(line.colour),
        width: line.width ?? 1.5,
        dash: line.dash,
        fill: line.fill ? () => colour(line.fill) : undefined,
        paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
        points: { show: line.points ?? false, size: 7, fill: () => colour(line.colour) },
        spanGaps: line.spanGaps ?? false,
    };
}

class Chart {
    /* spec: id, title, note, height, x, y and y2 (ticks, log, range), lines, data, marks, spans, rings, above, view, fit, fitted, tip, table, legend */
    constructor(host, spec) {
        this.spec = spec;
        this.at = null;
        this.tip = el('div', { class: 'tip', hidden: true });
        this.said = el('p', { class: 'unseen', 'aria-live': 'polite' });
        this.area = el('div', {
            class: 'plot', tabindex: '0', role: 'group', 'aria-roledescription': 'chart',
        });
        this.tools = el('div', { class: 'tools' });
        this.whole = el('button', { type: 'button', hidden: true, onclick: () => this.unzoom() }, 'Show all');
        this.fitted = Boolean(spec.fit && spec.fitted);
        this.fit = el('button', { type: 'button', hidden: !spec.fit, 'aria-pressed': String(this.fitted), onclick: () => this.refit() }, 'Usual range only');
        this.tools.append(this.fit, this.whole);
        this.heading = el('h3');
        this.note = el('p', { class: 'meta' });
        this.legend = el('ul', { class: 'legend' });
        this.figure = el('figure', { id: spec.id }, el('figcaption', null, this.heading, this.tools),
            this.note, this.legend, this.area, this.said, this.words());
        this.title();
        host.append(this.figure);
        this.data = cleaned(spec.data);
        if (!this.data) {
            this.area.replaceWith(el('p', { class: 'meta' }, 'These figures cannot be drawn.'));
            return;
        }
        this.draw();
        this.listen();
        charts.push(this);
    }

    title() {
        const { spec } = this;
        this.heading.textContent = shortened(spec.title);
        const notes = [spec.note, spec.above && aboveWords(spec.above, this.top(), spec.aboveWhat)].filter(Boolean);
        this.note.textContent = notes.join(' ');
        this.note.hidden = !notes.length;
        this.legend.replaceChildren(...(spec.legend ?? []).map((item) => el('li', null, swatch(item.colour, item.shape), shortened(item.name))));
        this.area.setAttribute('aria-label',
            `${spec.title}. Arrow keys go from value to value, plus and minus zoom, Escape goes back.`);
    }

    words() {
        const inside = el('div');
        return el('details', { ontoggle: (event) => event.target.open && inside.childElementCount === 0 && this.fillTable(inside) },
            el('summary', null, 'Table'), inside);
    }

    fillTable(inside) {
        const { head, row, rows } = this.spec.table, total = rows ?? this.spec.data[0].length;
        const stride = Math.ceil(total / TABLE_MOST), cells = [];
        for (let i = 0; i < total; i += stride) cells.push(row(i));
        inside.replaceChildren(table(head, cells.filter(Boolean), stride > 1 ? `Every ${stride}th of ${count(total)} rows.` : ''));
    }

    /* Where the chart ends. */
    top() {
        return this.fitted ? this.spec.fit[1] : this.spec.y.range()[1];
    }

    options() {
        const { spec } = this;
        const options = {
            width: Math.max(200, this.area.clientWidth), height: spec.height ?? 260,
            legend: { show: false },
            padding: [12, spec.y2 ? 0 : 26, 0, spec.y.hidden ? 20 : 0],
            cursor: { y: false, drag: { x: true, y: false, setScale: true }, points: { show: false } },
            scales: { x: scaleOf(spec.x, true), y: scaleOf(spec.fit && this.fitted ? { ...spec.y, range: () => spec.fit } : spec.y) },
            axes: [axisOf(spec.x, { space: 70, size: 30, ...spec.x.axis }),
                axisOf(spec.y, { scale: 'y', size: axisWidth, space: 34, show: !spec.y.hidden, ...spec.y.axis })],
            series: [{}, ...spec.lines.map(seriesOf)],
            hooks: {
                drawClear: [(u) => drawSpans(u, spec.spans ?? [])],
                draw: [(u) => {
                    u.ctx.save();
                    drawRings(u, spec.rings ?? []);
                    drawAbove(u, spec.above ?? []);
                    drawMarks(u, spec.marks ?? []);
                    u.ctx.restore();
                }],
                setCursor: [(u) => this.show(u.cursor.left >= 0 ? u.cursor.idx : null)],
                setScale: [(u, key) => key === 'x' && this.zoomed()],
            },
        };
        if (spec.y2) {
            options.scales.y2 = scaleOf(spec.y2);
            options.axes.push(axisOf(spec.y2, { scale: 'y2', side: 1, size: axisWidth, grid: { show: false }, ...spec.y2.axis }));
        }
        return options;
    }

    draw() {
        this.plot?.destroy();
        this.area.replaceChildren();
        this.plot = new uPlot(this.options(), this.data, this.area);
        this.area.append(this.tip);
        if (this.spec.view) this.plot.setScale('x', { min: this.spec.view[0], max: this.spec.view[1] });
    }

    /* What is usual in its full height, the rest outside. */
    refit() {
        const { min, max } = this.plot.scales.x;
        this.fitted = !this.fitted;
        this.fit.setAttribute('aria-pressed', String(this.fitted));
        this.title();
        this.draw();
        this.plot.setScale('x', { min, max });
    }

    /* Other data in the same place. */
    change(spec) {
        const data = cleaned(spec.data);
        if (!data || !this.data) return;
        this.data = data;
        this.spec = { ...this.spec, ...spec };
        this.tip.hidden = true;
        this.at = null;
        this.title();
        this.draw();
        const details = this.figure.querySelector('details');
        details.lastElementChild.replaceChildren();
        if (details.open) this.fillTable(details.lastElementChild);
    }

    listen() {
        new ResizeObserver(() => {
            const width = this.area.clientWidth;
            if (width && width !== this.plot.width) this.plot.setSize({ width, height: this.plot.height });
        }).observe(this.area);
        this.area.addEventListener('keydown', (event) => this.key(event));
        this.area.addEventListener('blur', () => this.leave());
        const touch = (event) => {
            if (event.pointerType !== 'touch') return;
            const box = this.plot.over.getBoundingClientRect();
            this.plot.setCursor({ left: event.clientX - box.left, top: event.clientY - box.top });
        };
        this.area.addEventListener('pointerdown', touch);
        this.area.addEventListener('pointermove', touch);
        this.area.addEventListener('pointerleave', (event) => {
            if (event.pointerType !== 'touch') this.leave();
        });
    }

    leave() {
        this.tip.hidden = true;
        this.plot.setCursor({ left: -10, top: -10 }, false);
    }

    /* ---- the tooltip ---- */

    show(index) {
        const told = index == null ? null : this.spec.tip(index);
        this.at = told ? index : this.at;
        this.tip.hidden = !told;
        if (!told) return;
        this.tip.replaceChildren(el('b', null, told.title), ...told.rows.map(([name, value, tint, shape]) =>
            el('div', null, el('span', null, tint && swatch(tint, shape), shortened(name)), el('span', null, value))));
        const x = this.plot.valToPos(this.data[0][index], 'x') + this.plot.over.offsetLeft;
        const room = this.area.clientWidth, width = this.tip.offsetWidth;
        const left = x + 14 + width <= room ? x + 14 : Math.max(0, x - 14 - width);
        this.tip.style.left = `${Math.min(left, Math.max(0, room - width))}px`;
        this.tip.style.top = '14px';
    }

    say(index) {
        const told = this.spec.tip(index);
        if (told) this.said.textContent = `${told.title}: ${told.rows.map(([name, value]) => `${name} ${value}`).join(', ')}`;
    }

    /* ---- keys ---- */

    visible() {
        const [x] = this.data, { min, max } = this.plot.scales.x;
        let first = x.findIndex((v) => v >= min), last = x.findLastIndex((v) => v <= max);
        if (first < 0) first = 0;
        if (last < 0) last = x.length - 1;
        return [first, last];
    }

    move(index, by) {
        const [first, last] = this.visible();
        let to = Math.max(first, Math.min(last, index));
        while (!this.spec.tip(to) && to + by >= first && to + by <= last) to += by;
        if (!this.spec.tip(to)) return;
        this.plot.setCursor({ left: this.plot.valToPos(this.data[0][to], 'x'), top: 10 }, false);
        this.show(to);
        this.say(to);
    }

    key(event) {
        const [first, last] = this.visible(), far = event.shiftKey ? 10 : 1;
        const at = this.at == null || this.at < first || this.at > last ? null : this.at;
        const actions = {
            ArrowRight: () => this.move(at == null ? first : at + far, 1),
            ArrowLeft: () => this.move(at == null ? last : at - far, -1),
            Home: () => this.move(first, 1),
            End: () => this.move(last, -1),
            '+': () => this.zoom(0.5),
            '=': () => this.zoom(0.5),
            '-': () => this.zoom(2),
            Escape: () => { this.leave(); this.unzoom(); },
        };
        if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        actions[event.key]();
    }

    extent() {
        const [x] = this.data, { range, log } = this.spec.x;
        return sane(range ? range(this.plot, x[0], x.at(-1)) : [x[0], x.at(-1)], log);
    }

    zoom(factor) {
        const { min, max } = this.plot.scales.x, [low, high] = this.extent();
        const middle = this.at == null ? (min + max) / 2 : this.data[0][this.at];
        const from = Math.max(low, middle - (middle - min) * factor), to = Math.min(high, middle + (max - middle) * factor);
        if (to > from) this.plot.setScale('x', { min: from, max: to });
    }

    unzoom() {
        const [min, max] = this.extent();
        this.plot.setScale('x', { min, max });
    }

    zoomed() {
        if (!this.plot) return;
        const { min, max } = this.plot.scales.x, [low, high] = this.extent();
        this.whole.hidden = !(min > low || max < high);
    }
}

/* Steps of 1 at least on an axis that counts. */
const whole = { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 1e8, 1e9] };

function fromZero(u, min, max) {
    return [0, max > 0 ? max * 1.06 : 1];
}

/* ---- the head of the page: what ran, its figures in large, and the verdicts ---- */

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

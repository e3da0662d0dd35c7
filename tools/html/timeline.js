/* timeline.js - two steps as flame charts at one scale: all threads and devices, drawn on a canvas.
 * Mouse, finger and keys choose a slice, which is told in words below; zoom and pan move both. */

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

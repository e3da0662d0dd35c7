/* job_heat.js - ranks x steps as a heat map: each step of each rank beside the median of all ranks.
 * Mouse, finger and arrow keys choose a cell, which is told in words below. */

const CELL_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const CELL_MOST = 4095;

/* Two characters a cell: thousandths of the median; 0: nobody was there. */
function cellsOf(text) {
    const digit = new Uint8Array(128), cells = new Uint16Array(text.length / 2);
    for (let i = 0; i < 64; i++) digit[CELL_DIGITS.charCodeAt(i)] = i;
    for (let i = 0; i < cells.length; i++) cells[i] = 64 * digit[text.charCodeAt(2 * i)] + digit[text.charCodeAt(2 * i + 1)];
    return cells;
}

/* What is coloured most strongly: a little more than who is called late, so that hiccups do not pale what lasts; of nobody, what few cells are above. */
function topOf(cells, accused) {
    const there = cells.filter((v) => v > 0).sort(), latest = Math.max(...accused.map((verdict) => 1 + 1.2 * verdict.late));
    const below = (share) => (there[Math.floor(share * (there.length - 1))] ?? 0) / 1000;
    return Math.min(4, Math.max(1.05, accused.length ? Math.max(below(0.95), latest) : below(0.995)));
}

function parts(name) {
    const text = colour(name);
    return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

function inkOfCells(top) {
    const [none, middle, more, less] = ['idle', 'surface', 'against', 'main'].map(parts);
    return (cell) => {
        if (!cell) return none;
        const by = Math.log(cell / 1000) / Math.log(top), share = Math.min(1, by * by), to = by > 0 ? more : less;
        return middle.map((part, i) => Math.round(part + share * (to[i] - part)));
    };
}

class JobHeat {
    constructor(parent, job, drawn, one) {
        Object.assign(this, { heat: drawn.heat, one, metric: 'own', at: null });
        this.columns = this.heat.first_steps.length;
        this.rows = this.heat.ranks.length;
        this.cells = { own: cellsOf(this.heat.own), step: cellsOf(this.heat.step) };
        this.build(parent);
        new ResizeObserver(() => this.draw()).observe(this.canvas);
        charts.push({ plot: { redraw: () => this.draw() } });
        this.choose('own');
    }

    build(parent) {
        const own = this.heat.by_work ? 'own time for the same work' : 'own time', last = this.heat.ranks.at(-1)[1];
        this.select = el('select', { id: 'heat-shows', onchange: () => this.choose(this.select.value) },
            el('option', { value: 'own' }, `${own} (without comm and wait)`), el('option', { value: 'step' }, 'whole step'));
        this.canvas = el('canvas', { tabindex: 0, role: 'group', 'aria-roledescription': 'heat map',
            'aria-label': 'Ranks by steps. Arrow keys choose a cell, Enter shows its rank.' });
        this.canvas.style.height = `${Math.max(84, Math.min(420, this.rows * 14))}px`;
        this.canvas.addEventListener('keydown', (event) => this.key(event));
        for (const type of ['pointermove', 'pointerdown']) this.canvas.addEventListener(type, (event) => this.point(event));
        this.told = el('p', { class: 'told', 'aria-live': 'polite' });
        this.show = el('button', { type: 'button', hidden: true, onclick: () => this.open() });
        this.shades = el('canvas', { 'aria-hidden': 'true', width: 140, height: 1 });
        this.least = el('span');
        this.most = el('span');
        parent.append(el('figure', { id: 'heat', class: 'heat' },
            el('div', { class: 'pick' }, el('label', { for: 'heat-shows' }, 'Colours show'), this.select),
            el('div', { class: 'ends' }, el('span', null, `rank ${this.heat.ranks[0][0]}, at the top`), el('span', null, `rank ${last}, at the bottom`)),
            this.canvas,
            el('div', { class: 'ends' }, el('span', null, `step ${this.heat.first_steps[0]}`), el('span', null, `step ${this.heat.last_step}`)),
            el('p', { class: 'scale' }, this.least, this.shades, this.most, el('span', null, [swatch('idle'), 'no figure'])),
            this.told, this.show, this.note()));
    }

    note() {
        const { ranks_per_row: ranks, blocks_per_column: blocks } = this.heat;
        const words = [ranks > 1 && `${count(ranks)} ranks`, blocks > 1 && `${count(blocks)} blocks of steps`].filter(Boolean).join(' and ');
        const cells = words ? `A cell is of up to ${words}, and has the largest of their figures.` : 'A cell for each rank and block of steps.';
        return el('p', { class: 'note' }, cells, this.one.accused.size > 0 && ' A mark at the left: a rank that has been called late.');
    }

    choose(metric) {
        this.metric = metric;
        this.top = topOf(this.cells[metric], [...this.one.accused.values()]);
        this.least.textContent = `${(1 / this.top).toFixed(2)} × the median`;
        this.most.textContent = `${this.top.toFixed(2)} × and more`;
        this.draw();
        this.tell();
    }

    /* ---- drawing ---- */

    /* The largest of the cells that share a pixel. */
    reduced(wide, high) {
        const out = new Uint16Array(wide * high), cells = this.cells[this.metric];
        for (let row = 0; row < this.rows; row++) {
            const to = Math.floor(row * high / this.rows) * wide;
            for (let column = 0; column < this.columns; column++) {
                const at = to + Math.floor(column * wide / this.columns), v = cells[row * this.columns + column];
                if (v > out[at]) out[at] = v;
            }
        }
        return out;
    }

    image(cells, wide, high) {
        const picture = el('canvas', { width: wide, height: high }), context = picture.getContext('2d');
        const data = context.createImageData(wide, high), ink = inkOfCells(this.top);
        cells.forEach((cell, i) => data.data.set([...ink(cell), 255], 4 * i));
        context.putImageData(data, 0, 0);
        return picture;
    }

    draw() {
        const ratio = devicePixelRatio, { canvas } = this, width = Math.max(1, Math.round(canvas.clientWidth * ratio));
        const height = Math.max(1, Math.round(canvas.clientHeight * ratio)), context = canvas.getContext('2d');
        Object.assign(canvas, { width, height });
        const wide = Math.min(this.columns, width), high = Math.min(this.rows, height);
        context.imageSmoothingEnabled = false;
        context.drawImage(this.image(this.reduced(wide, high), wide, high), 0, 0, width, height);
        this.late(context, height, ratio);
        if (this.at) this.frame(context, width, height, ratio);
        const scale = Uint16Array.from({ length: 140 }, (_, i) => Math.round(1000 * this.top ** (i / 69.5 - 1)));
        this.shades.getContext('2d').drawImage(this.image(scale, 140, 1), 0, 0);
    }

    /* A mark at the side of each row with a rank that has been called late. */
    late(context, height, ratio) {
        const high = height / this.rows, size = 5 * ratio;
        context.fillStyle = colour('ink');
        this.heat.ranks.forEach(([first, last], row) => {
            if (![...this.one.accused.keys()].some((rank) => rank >= first && rank <= last)) return;
            const y = (row + 0.5) * high;
            context.beginPath();
            context.moveTo(0, y - size);
            context.lineTo(1.5 * size, y);
            context.lineTo(0, y + size);
            context.fill();
        });
    }

    frame(context, width, height, ratio) {
        const [row, column] = this.at, wide = width / this.columns, high = height / this.rows;
        context.strokeStyle = colour('ink');
        context.lineWidth = 2 * ratio;
        context.strokeRect(column * wide - ratio, row * high - ratio, Math.max(wide, 4) + 2 * ratio, Math.max(high, 4) + 2 * ratio);
    }

    /* ---- choosing ---- */

    words([row, column]) {
        const { ranks, first_steps: steps, last_step: end } = this.heat, [first, last] = ranks[row];
        const to = column + 1 < this.columns ? steps[column + 1] - 1 : end, cell = this.cells[this.metric][row * this.columns + column];
        const who = first === last ? `Rank ${first}` : `Ranks ${first} to ${last}`;
        const when = steps[column] >= to ? `step ${steps[column]}` : `steps ${steps[column]} to ${to}`;
        if (!cell) return `${who}, ${when}: no figure`;
        const several = this.heat.ranks_per_row > 1 || this.heat.blocks_per_column > 1;
        return `${who}, ${when}: ${several ? 'at most ' : ''}${(cell / 1000).toFixed(3)} × the median${cell === CELL_MOST ? ' or more' : ''}`;
    }

    tell() {
        this.told.textContent = this.at ? this.words(this.at) : 'Point at a cell, or use the arrow keys.';
        this.show.hidden = !this.at;
        if (this.at) this.show.textContent = `Show rank ${this.latest()}`;
    }

    latest() {
        return this.heat.ranks[this.at[0]][2];
    }

    open() {
        if (this.at) this.one.open(this.latest());
    }

    move(row, column) {
        const within = (at, most) => Math.max(0, Math.min(most - 1, at));
        this.at = [within(row, this.rows), within(column, this.columns)];
        this.draw();
        this.tell();
    }

    point(event) {
        const box = this.canvas.getBoundingClientRect();
        const row = Math.floor((event.clientY - box.top) / box.height * this.rows), column = Math.floor((event.clientX - box.left) / box.width * this.columns);
        if (!this.at || row !== this.at[0] || column !== this.at[1]) this.move(row, column);
    }

    key(event) {
        const [row, column] = this.at ?? [0, 0], far = !this.at ? 0 : event.shiftKey ? 10 : 1;
        const actions = {
            ArrowRight: () => this.move(row, column + far),
            ArrowLeft: () => this.move(row, column - far),
            ArrowDown: () => this.move(row + far, column),
            ArrowUp: () => this.move(row - far, column),
            PageDown: () => this.move(row + 10, column),
            PageUp: () => this.move(row - 10, column),
            Home: () => this.move(row, 0),
            End: () => this.move(row, this.columns - 1),
            Enter: () => this.open(),
            Escape: () => { this.at = null; this.draw(); this.tell(); },
        };
        if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        actions[event.key]();
    }
}

function heatSection(job, drawn, one) {
    if (!drawn.heat) return;
    const host = card(null, null);
    section('steps', 'Ranks by steps', 'Each step of each rank beside the median of all ranks in that step: what all have in common cancels.', host);
    new JobHeat(host, job, drawn, one);
}

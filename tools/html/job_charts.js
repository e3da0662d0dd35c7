/* tools/html/job_charts.js - a job's ranks: one of them, all of them step by step, and who talks to whom. */

/* ---- one rank: how late it is, its stages and regions beside the others', its file ---- */

/* Of a path as the program was told it; what a name holds is never more than a part of a path. */
function fileLink(path, base) {
    const href = (text) => text.split('/').map(encodeURIComponent).join('/');
    return path.startsWith('/') ? `file://${href(path)}` : `./${href(base + path)}`;
}

function lateWords(rank, verdict) {
    if (rank.late == null) return 'not known';
    const by = signed(percent(rank.late), rank.late);
    return verdict ? `${by} (surely ${percent(verdict.late_low)} to ${percent(verdict.late_high)})` : by;
}

function besideMean(own, mean) {
    const by = own - mean;
    return el('span', { class: by > 0.01 * mean ? 'less' : '' }, by === 0 ? time(0) : signed(time(by), by));
}

class JobRank {
    constructor(job, drawn) {
        Object.assign(this, { job, drawn });
        this.at = new Map(job.ranks.map((rank, i) => [rank.rank, i]));
        this.accused = new Map(job.verdicts.filter((v) => v.name === 'late-rank').map((v) => [v.rank, v]));
    }

    /* Its part of the page. */
    place() {
        const move = (by) => () => this.step(by), numbers = this.job.ranks.map((rank) => rank.rank);
        const from = Math.min(...numbers), to = Math.max(...numbers);
        this.field = el('input', { type: 'number', id: 'rank-number', min: from, max: to, step: 1, onchange: () => this.show(Number(this.field.value)) });
        this.body = el('div', { id: 'rank-body', 'aria-live': 'polite' });
        this.node = section('rank', 'One rank', null, card(null, null,
            el('div', { class: 'pick' }, el('label', { for: 'rank-number' }, 'Rank'), this.field,
                el('button', { type: 'button', onclick: move(-1) }, 'Previous'), el('button', { type: 'button', onclick: move(1) }, 'Next')),
            this.body));
        const latest = this.job.ranks.reduce((most, rank) => ((rank.late ?? -1) > (most.late ?? -1) ? rank : most));
        this.show(latest.rank);
    }

    step(by) {
        const at = this.at.get(Number(this.field.value)) ?? 0, last = this.job.ranks.length - 1;
        this.show(this.job.ranks[Math.max(0, Math.min(last, at + by))].rank);
    }

    /* From elsewhere in the page. */
    open(number) {
        this.show(number);
        this.node.scrollIntoView();
        this.field.focus({ preventScroll: true });
    }

    button(number) {
        return el('button', { type: 'button', class: 'name', 'data-rank': number, onclick: () => this.open(number) }, `rank ${number}`);
    }

    show(number) {
        const at = this.at.get(number);
        this.field.value = String(number);
        if (at === undefined) {
            this.body.replaceChildren(el('p', null, this.missing(number)));
            return;
        }
        this.body.replaceChildren(el('div', null, el('h3', null, `Rank ${number}`), this.facts(at), this.stages(at), this.regions(at)));
    }

    missing(number) {
        if (this.job.job.gaps.some(([first, last]) => first <= number && number <= last)) return `There is no file of rank ${number}.`;
        return this.job.job.ranks > this.job.ranks.length ? `Rank ${number} is not among the ${count(this.job.ranks.length)} ranks of this page, the latest ones.`
            : `There is no rank ${number}.`;
    }

    facts(at) {
        const rank = this.job.ranks[at], verdict = this.accused.get(rank.rank);
        return facts([['Late', el('span', { class: verdict ? 'less' : '' }, lateWords(rank, verdict))],
            ['Costs the job', verdict ? `${time(verdict.cost)} per step, most of it in ${verdict.stage}` : ''],
            ['Host', rank.host], ['Local rank', rank.local_rank == null ? '' : String(rank.local_rank)],
            ['Ended', rank.complete ? 'yes' : 'no: the run did not end, or its file is cut off'],
            ['File', rank.file && el('a', { href: fileLink(rank.file, this.drawn.base) }, rank.file)]]);
    }

    rows(values, others, mean) {
        return values.map((own, k) => [own, others(k)]).filter(([own]) => own != null)
            .map(([own, other]) => [[swatch(other.kind), other.stage ?? other.name], time(own), time(mean(other).mean), besideMean(own, mean(other).mean),
                [time(mean(other).max), ' ', bar(own / (mean(other).max || 1), other.kind)]]);
    }

    list(title, first, rows, note) {
        return [el('h4', null, title), note && el('p', { class: 'note' }, note), table([first, 'This rank', 'Mean of ranks', 'Difference', 'Maximum of ranks'], rows)];
    }

    stages(at) {
        const { stages, rank_stages: all } = this.drawn;
        if (!stages.length) return null;
        const rows = this.rows(all[at], (k) => this.job.stages[stages[k]], (stage) => stage.per_step);
        const left = this.drawn.totals.stages - stages.length;
        return this.list('Stages, per step', 'Stage', rows, left > 0 && `Those with the most time; ${count(left)} are left out.`);
    }

    regions(at) {
        const values = this.drawn.rank_regions[at], left = this.drawn.totals.regions - values.length;
        if (!values.length) return null;
        const rows = this.rows(values, (k) => this.job.regions[k], (region) => region.self);
        return this.list('Regions, self time of the run', 'Region', rows,
            left > 0 && `The ${count(values.length)} regions with the most self time of the job; ${count(left)} are left out.`);
    }
}

/* ---- ranks x steps as a heat map ---- */

/* Each step of each rank beside the median of all ranks. Mouse, finger and arrow keys choose a cell, which is told in
 * words below. */

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

/* ---- who talks to whom ---- */

/* Senders from top to bottom, receivers from left to right. Mouse, finger and arrow keys choose a cell, which is told in
 * words below. */

const MATRIX_SHADES = 140, FIGURES_MOST = 16;

/* Black or white, what is read more easily on it. */
function readableOn(colours) {
    const [r, g, b] = colours.map((part) => (part / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? '#000' : '#fff';
}

class JobMatrix {
    constructor(parent, matrix, messages) {
        Object.assign(this, { matrix, messages, metric: 1, at: null, size: matrix.ranks.length });
        this.values = [0, 1].map(() => new Float64Array(this.size ** 2));
        for (const [from, to, ...both] of matrix.cells) both.forEach((value, metric) => { this.values[metric][from * this.size + to] = value; });
        this.build(parent);
        new ResizeObserver(() => this.draw()).observe(this.canvas);
        charts.push({ plot: { redraw: () => this.draw() } });
        this.choose(1);
    }

    build(parent) {
        const { ranks } = this.matrix;
        this.select = el('select', { id: 'matrix-shows', onchange: () => this.choose(Number(this.select.value)) },
            el('option', { value: 1 }, 'bytes'), el('option', { value: 0 }, 'messages'));
        this.canvas = el('canvas', { tabindex: 0, role: 'group', 'aria-roledescription': 'heat map',
            'aria-label': 'Senders by receivers. Arrow keys choose a cell.' });
        this.canvas.addEventListener('keydown', (event) => this.key(event));
        for (const type of ['pointermove', 'pointerdown']) this.canvas.addEventListener(type, (event) => this.point(event));
        this.told = el('p', { class: 'told', 'aria-live': 'polite' });
        this.shades = el('canvas', { 'aria-hidden': 'true', width: MATRIX_SHADES, height: 1 });
        [this.least, this.most] = [el('span'), el('span')];
        const ends = [ranks[0][0], ranks.at(-1)[1]];
        parent.append(el('figure', { id: 'matrix', class: 'heat matrix' },
            el('div', { class: 'pick' }, el('label', { for: 'matrix-shows' }, 'Colours show'), this.select),
            el('div', { class: 'ends' }, el('span', null, `from rank ${ends[0]}, at the top, to rank ${ends[1]}`)),
            this.canvas,
            el('div', { class: 'ends' }, el('span', null, `to rank ${ends[0]}`), el('span', null, `to rank ${ends[1]}`)),
            el('p', { class: 'scale' }, this.least, this.shades, this.most, el('span', null, [swatch('idle'), 'nothing'])),
            this.told, el('p', { class: 'note' }, this.note())));
    }

    note() {
        const { ranks_per_block: ranks } = this.matrix, { other_messages: others } = this.messages;
        const cells = ranks > 1 ? `A cell is of ${count(ranks)} ranks by ${count(ranks)}, and has the sum of what they sent.` : 'A cell for each pair of ranks.';
        return others > 0 ? `${cells} ${count(others)} messages are in none: their partners are not told one by one.` : cells;
    }

    choose(metric) {
        const there = this.values[metric].filter((v) => v > 0);
        this.metric = metric;
        this.ends = [there.reduce((a, b) => Math.min(a, b), Infinity), there.reduce((a, b) => Math.max(a, b), 0)];
        if (!there.length) this.ends = [0, 0];
        this.least.textContent = this.text(this.ends[0]);
        this.most.textContent = this.text(this.ends[1]);
        this.draw();
        this.tell();
    }

    text(value, metric = this.metric) {
        return metric ? amount(value, 'bytes') : count(value);
    }

    /* ---- drawing: by the logarithm, since a halo's bytes and a barrier's lie far apart ---- */

    ink() {
        const [none, least, most] = ['idle', 'surface', 'against'].map(parts), [low, high] = this.ends.map(Math.log);
        return (value) => {
            if (!(value > 0)) return none;
            const share = high > low ? 0.15 + 0.85 * (Math.log(value) - low) / (high - low) : 1;
            return least.map((part, i) => Math.round(part + share * (most[i] - part)));
        };
    }

    image(values, wide, high) {
        const picture = el('canvas', { width: wide, height: high }), context = picture.getContext('2d');
        const data = context.createImageData(wide, high), ink = this.ink();
        values.forEach((value, i) => data.data.set([...ink(value), 255], 4 * i));
        context.putImageData(data, 0, 0);
        return picture;
    }

    draw() {
        const ratio = devicePixelRatio, { canvas, size } = this, width = Math.max(1, Math.round(canvas.clientWidth * ratio));
        const height = Math.max(1, Math.round(canvas.clientHeight * ratio)), context = canvas.getContext('2d');
        Object.assign(canvas, { width, height });
        context.imageSmoothingEnabled = false;
        context.drawImage(this.image(this.values[this.metric], size, size), 0, 0, width, height);
        this.figures(context, width, height);
        if (this.at) {
            context.strokeStyle = colour('ink');
            context.lineWidth = 2 * ratio;
            context.strokeRect(this.at[1] * width / size, this.at[0] * height / size, Math.max(width / size, 4), Math.max(height / size, 4));
        }
        const scale = Array.from({ length: MATRIX_SHADES }, (_, i) => this.ends[0] * (this.ends[1] / this.ends[0]) ** (i / (MATRIX_SHADES - 1)));
        this.shades.getContext('2d').drawImage(this.image(scale, MATRIX_SHADES, 1), 0, 0);
    }

    /* In each cell its figure, where there is room for all of them. */
    figures(context, width, height) {
        const { size } = this, values = this.values[this.metric], texts = [...values].map((value) => (value > 0 ? this.text(value) : ''));
        const wide = width / size, high = height / size, room = wide - 6 * devicePixelRatio;
        if (size > FIGURES_MOST) return;
        const fits = [12, 11, 10, 9].find((points) => {
            context.font = `${points * devicePixelRatio}px system-ui, sans-serif`;
            return texts.every((text) => context.measureText(text).width <= room);
        });
        if (!fits) return;
        const ink = this.ink();
        context.textAlign = 'center';
        context.textBaseline = 'middle';
        texts.forEach((text, i) => {
            context.fillStyle = readableOn(ink(values[i]));
            context.fillText(text, (i % size + 0.5) * wide, (Math.floor(i / size) + 0.5) * high);
        });
    }

    /* ---- choosing ---- */

    words([row, column]) {
        const who = ([first, last]) => (first === last ? `rank ${first}` : `ranks ${first} to ${last}`), at = row * this.size + column;
        const pair = `From ${who(this.matrix.ranks[row])} to ${who(this.matrix.ranks[column])}: `;
        const [messages, size] = this.values.map((values, metric) => this.text(values[at], metric));
        return pair + (this.values[0][at] > 0 ? `${messages} messages, ${size}` : 'nothing');
    }

    tell() {
        this.told.textContent = this.at ? this.words(this.at) : 'Point at a cell, or use the arrow keys.';
    }

    move(row, column) {
        this.at = [row, column].map((at) => Math.max(0, Math.min(this.size - 1, at)));
        this.draw();
        this.tell();
    }

    point(event) {
        const box = this.canvas.getBoundingClientRect(), cell = (at, length) => Math.floor(at / length * this.size);
        this.move(cell(event.clientY - box.top, box.height), cell(event.clientX - box.left, box.width));
    }

    key(event) {
        const [row, column] = this.at ?? [0, 0], far = !this.at ? 0 : event.shiftKey ? 10 : 1;
        const actions = {
            ArrowRight: () => this.move(row, column + far), ArrowLeft: () => this.move(row, column - far),
            ArrowDown: () => this.move(row + far, column), ArrowUp: () => this.move(row - far, column),
            Home: () => this.move(row, 0), End: () => this.move(row, this.size - 1),
            Escape: () => { this.at = null; this.draw(); this.tell(); },
        };
        if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        actions[event.key]();
    }
}

function matrixSection(job, drawn) {
    if (!drawn.matrix) return;
    const { messages } = job, host = card(null, null);
    section('matrix-of', 'Who talks to whom', `${count(messages.messages)} messages of ${amount(messages.bytes, 'bytes')} between ${count(messages.pairs)} pairs of ranks, `
        + 'counted where they were sent.', host);
    new JobMatrix(host, drawn.matrix, messages);
}

/* job_matrix.js - who talks to whom: senders from top to bottom, receivers from left to right.
 * Mouse, finger and arrow keys choose a cell, which is told in words below. */

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

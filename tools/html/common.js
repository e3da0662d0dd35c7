/* tools/html/common.js - what both pages are made of: elements, names, numbers, marks. */

/* ---- elements. All text goes in as text: whatever a name holds, it is never markup ---- */

function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (name === 'class') node.className = value;
        else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
        else if (value === true) node.setAttribute(name, '');
        else if (value !== false && value != null) node.setAttribute(name, value);
    }
    for (const child of children.flat(Infinity)) {
        if (child != null && child !== false) node.append(child instanceof Node ? child : String(child));
    }
    return node;
}

/* A colour by its name in style.css. */
function swatch(colour, shape) {
    const node = el('span', { class: 'swatch' + (shape ? ' ' + shape : ''), 'aria-hidden': 'true' });
    if (shape === 'ring') node.style.borderColor = `var(--${colour})`;
    else node.style.backgroundColor = `var(--${colour})`;
    return node;
}

function bar(share, colour) {
    const inside = el('i');
    inside.style.width = `${Math.max(0, Math.min(100, 100 * share))}%`;
    inside.style.backgroundColor = `var(--${colour})`;
    return el('span', { class: 'bar', 'aria-hidden': 'true' }, inside);
}

/* What is at a side beyond what one sees says so, by a shadow and in words. */
const sideways = new ResizeObserver((changes) => changes.forEach(({ target }) => tellSideways(target.closest('.scroll'))));

function tellSideways(area) {
    const left = area.scrollLeft > 1, right = area.scrollLeft + area.clientWidth < area.scrollWidth - 1;
    area.classList.toggle('to-left', left);
    area.classList.toggle('to-right', right);
    area.nextElementSibling.hidden = !(left || right);
    if (left || right) area.tabIndex = 0;
    else area.removeAttribute('tabindex');
}

function scrolled(inside) {
    const area = el('div', { class: 'scroll', role: 'group', 'aria-label': 'Table', onscroll: (event) => tellSideways(event.target) }, inside);
    sideways.observe(area);
    sideways.observe(inside);
    return el('div', null, area, el('p', { class: 'sideways', hidden: true }, 'There are more columns: scroll sideways.'));
}

/* heads: names, or [name, class]. rows: arrays of cells; the first is the row's name. A string instead of an array: what the rows below it are of. */
function table(heads, rows, caption) {
    const classes = heads.map((head) => (Array.isArray(head) ? head[1] : null));
    const names = heads.map((head) => (Array.isArray(head) ? head[0] : head));
    const line = (cells) => (typeof cells === 'string'
        ? el('tr', { class: 'group' }, el('th', { scope: 'rowgroup', colspan: heads.length }, cells))
        : el('tr', null, cells.map((cell, i) => (i === 0 ? el('th', { scope: 'row', class: classes[0] ?? '' }, cell) : el('td', { class: classes[i] ?? '' }, cell)))));
    const body = el('tbody', null, rows.map(line)), lines = [...body.rows];
    shortenNames(lines);
    const head = el('thead', null, el('tr', null, names.map((name, i) => el('th', { scope: 'col', class: classes[i] ?? '' }, name))));
    head.querySelector('th')?.style.setProperty('--word', roomForWords([head.rows[0], ...lines]));
    return scrolled(el('table', null, caption && el('caption', null, caption), head, body));
}

function card(title, note, ...children) {
    return el('div', { class: 'card' }, title && el('h3', null, title), note && el('p', null, note), children);
}

function facts(pairs) {
    return el('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== '' && value != null)
        .map(([name, value]) => [el('dt', null, name), el('dd', null, value)]));
}

/* ---- names of any length ---- */

/* What is too long for a page is cut where it says the least, and is told whole where one points at it. */

const NAME_MOST = 200, NAME_CUT = '…', NAME_AROUND = 12;

const cutEnds = (most) => [Math.ceil((most - 1) / 2), Math.floor((most - 1) / 2)];

/* A name alone: its middle goes. */
function shortened(name, most = NAME_MOST) {
    const [head, tail] = cutEnds(most);
    return name.length <= most ? name : name.slice(0, head) + NAME_CUT + name.slice(name.length - tail);
}

function sharedHead(a, b) {
    const most = Math.min(a.length, b.length);
    let n = 0;
    while (n < most && a[n] === b[n]) n++;
    return n;
}

function sharedTail(a, b) {
    const most = Math.min(a.length, b.length);
    let n = 0;
    while (n < most && a[a.length - 1 - n] === b[b.length - 1 - n]) n++;
    return n;
}

/* A name beside others: what it shares with those that would look alike goes, what differs stays (as lib/out/columns.c does it in a terminal). */
function apart(name, others, most = NAME_MOST, from = 0, to = name.length) {
    if (to - from <= most) return name.slice(from, to);
    const [head, tail] = cutEnds(most), alike = others.filter((other) => other !== name
        && sharedHead(name, other) >= from + head && sharedTail(name, other) >= name.length - to + tail);
    if (!alike.length || most < 3) return name.slice(from, from + head) + NAME_CUT + name.slice(to - tail, to);
    const first = Math.min(...alike.map((other) => sharedHead(name, other)));
    const last = Math.max(first, name.length - Math.min(...alike.map((other) => sharedTail(name, other))));
    const start = Math.max(from, first - NAME_AROUND), end = Math.min(to, last + NAME_AROUND);
    const middle = Math.min(end - start, Math.floor((most - 2) * 2 / 3)), [before, behind] = cutEnds(most - 1 - middle);
    return (start - from <= before ? name.slice(from, start) : name.slice(from, from + before) + NAME_CUT) + apart(name, others, middle, start, end)
        + (to - end <= behind ? name.slice(end, to) : NAME_CUT + name.slice(to - behind, to));
}

function longTexts(cell) {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
    while (walk.nextNode()) if (walk.currentNode.data.length > NAME_MOST) found.push(walk.currentNode);
    return found;
}

/* Names in a table's rows, each beside those of its column. */
function shortenNames(rows) {
    const columns = new Map();
    for (const row of rows) {
        if (row.textContent.length <= NAME_MOST) continue;
        [...row.cells].forEach((cell, i) => columns.set(i, [...columns.get(i) ?? [], ...longTexts(cell)]));
    }
    for (const nodes of columns.values()) {
        const names = [...new Set(nodes.map((node) => node.data))];
        for (const node of nodes) {
            const name = node.data;
            node.parentElement.title = name;
            node.data = apart(name, names);
        }
    }
}

/* ---- words of first columns ---- */

const WORD_LONG = 12, WORD_ENDS = /(?<=[./:>_,;()<-])(?=[^./:>_,;()<-])/;

/* A long word may go on in the next line behind its dots and dashes, and only there. Returns how long its longest part is. */
function breakable(cell) {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), nodes = [];
    let longest = 0;
    while (walk.nextNode()) nodes.push(walk.currentNode);
    for (const node of nodes) {
        const words = node.data.split(/\s+/), parts = words.some((word) => word.length > WORD_LONG) ? node.data.split(WORD_ENDS) : [node.data];
        for (const part of parts) for (const word of part.split(/\s+/)) longest = Math.max(longest, word.length);
        if (parts.length > 1) node.replaceWith(...parts.flatMap((part, i) => (i ? [document.createElement('wbr'), part] : [part])));
    }
    return longest;
}

/* What stands in front of a name: the colour of its kind, and how deep it is in a tree. */
function inFront(cell) {
    return (cell.querySelector('.swatch') ? 18 : 0) + (parseInt(cell.firstElementChild?.style.paddingLeft, 10) || 0);
}

/* So wide is the first column at least that no word in it is broken (style.css bounds that). */
function roomForWords(rows) {
    const cells = rows.map((row) => row.cells[0]).filter((cell) => cell?.colSpan === 1);
    const letters = Math.max(0, ...cells.map(breakable)), pixels = Math.max(0, ...cells.map(inFront));
    return `calc(${(1.1 * letters).toFixed(1)}ch + ${pixels}px)`;
}

/* ---- numbers as people read them: three digits and a unit that suits ---- */

const DASH = '–';

function digits(value) {
    const size = Math.abs(value);
    return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

function scaled(value, units, step) {
    let size = value, unit = 0;
    while (Math.abs(size) >= step * 0.9995 && unit < units.length - 1) {
        size /= step;
        unit++;
    }
    if (Math.abs(size) >= step) return value.toExponential(2) + (units[0] ? '\u202f' + units[0] : '');
    const whole = unit === 0 && Number.isInteger(size);
    return (whole ? String(size) : digits(size)) + (units[unit] ? '\u202f' + units[unit] : '');
}

function known(value) {
    return typeof value === 'number' && Number.isFinite(value);
}

/* Nanoseconds: "950 ns", "41.2 ms", "2 min 14 s". */
function time(ns) {
    if (!known(ns)) return DASH;
    if (Math.abs(ns) < 99.95e9) return scaled(ns, ['ns', 'µs', 'ms', 's'], 1000);
    const seconds = Math.round(ns / 1e9), minutes = Math.floor(seconds / 60);
    if (minutes < 60) return `${minutes}\u202fmin ${seconds % 60}\u202fs`;
    if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}\u202fh ${minutes % 60}\u202fmin`;
    return `${Math.floor(minutes / 1440)}\u202fd ${Math.floor(minutes / 60) % 24}\u202fh`;
}

/* Labels of an axis: one unit for all, and no more decimals than the distance between them needs. */
function ticks(values, units, step, base) {
    const shown = values.filter((v) => v != null), most = Math.max(...shown.map(Math.abs), 0);
    const unit = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log(most / base) / Math.log(step) + 1e-9)));
    const size = base * step ** unit, apart = Math.min(...shown.slice(1).map((v, i) => Math.abs(v - shown[i]))) / size;
    const places = apart > 0 && Number.isFinite(apart) ? Math.max(0, Math.min(6, -Math.floor(Math.log10(apart) + 1e-9))) : 2;
    return values.map((v) => (v == null ? null : v === 0 ? '0'
        : String(Number((v / size).toFixed(places))) + (units[unit] ? '\u202f' + units[unit] : '')));
}

const timeTicks = (values) => (Math.max(...values) < 120e9 ? ticks(values, ['ns', 'µs', 'ms', 's'], 1000, 1) : values.map(time));
const byteTicks = (values) => ticks(values, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], 1000, 1);
const plainTicks = (values) => ticks(values, ['', 'k', 'M', 'G', 'T', 'P'], 1000, 1);
const percentTicks = (values) => values.map((v) => (v == null ? null : `${Number((100 * v).toFixed(2))}\u202f%`));
const eachTick = (format) => (values) => values.map((v) => (v == null ? null : format(v)));

/* With a sign, for differences. */
function signed(text, value) {
    return value > 0 ? '+' + text : text.replace('-', '−');
}

function count(n) {
    if (!known(n)) return DASH;
    return n < 1e6 ? n.toLocaleString('en-US').replaceAll(',', '\u202f') : scaled(n, ['', 'k', 'M', 'G', 'T'], 1000);
}

function amount(value, unit) {
    if (!known(value)) return DASH;
    if (unit === 'bytes') return scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], 1000);
    const size = Math.abs(value);
    if (size > 0 && size < 0.01) return value.toExponential(2) + (unit ? '\u202f' + unit : '');
    if (unit === '%' || size < 1000) {
        return (Number.isInteger(value) ? String(value) : size < 1 ? value.toFixed(3) : digits(value))
            + (unit ? '\u202f' + unit : '');
    }
    return scaled(value, ['', 'k', 'M', 'G', 'T', 'P'].map((prefix) => prefix + unit), 1000);
}

function percent(share) {
    if (!known(share)) return DASH;
    const p = 100 * share, size = Math.abs(p);
    if (size > 0 && size < 0.005) return '<0.01\u202f%';
    return p.toFixed(size === 0 ? 0 : size < 0.995 ? 2 : size < 99.95 ? 1 : 0) + '\u202f%';
}

/* What became of a pipeline's slots: as the report has it, and as people read it. */
const SLOT_SHARES = [['retiring', 'Retiring'], ['bad_speculation', 'Bad speculation'], ['frontend_bound', 'Front-end bound'], ['backend_bound', 'Back-end bound']];

/* An error of a sample: 0 where all calls were in it. Of what is a share itself, in the same percent. */
function sampleError(error, value, isShare) {
    if (!known(error) || error < 0 || !known(value) || value < 0) return null;
    if (error === 0 || (value === 0 && !isShare)) return ' exact';
    return ` ±\u202f${percent(isShare ? error : error / value)}`;
}

/* The report's sentences are in plain ASCII, for terminals; the page has one way to write a unit. What is quoted is somebody's name. */
function typeset(text) {
    return text.split('"').map((part, i) => (i % 2 ? part
        : part.replace(/(\d) us\b/g, '$1\u202fµs').replace(/(\d) x(?![\w-])/g, '$1\u202f×'))).join('"');
}

function rate(perSecond, unit) {
    return known(perSecond) && perSecond > 0 ? scaled(perSecond, ['', 'k', 'M', 'G', 'T'].map((p) => p + unit), 1000) : DASH;
}

/* ---- what a chart says beside its data ---- */

/* Lines with a name, shaded parts, rings, and what is above its end. */

const LABEL_HIGH = 15;

function drawSpans(u, spans) {
    const { ctx, bbox } = u;
    for (const span of spans) {
        const from = Math.max(bbox.left, u.valToPos(span.from, 'x', true));
        const to = Math.min(bbox.left + bbox.width, u.valToPos(span.to, 'x', true));
        if (to <= from) continue;
        ctx.fillStyle = colour('shade');
        ctx.fillRect(from, bbox.top, to - from, bbox.height);
    }
}

/* On a plate of its own, since lines of data go anywhere. */
function label(u, text, x, y, align, name) {
    const { ctx } = u, ratio = devicePixelRatio;
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = align;
    ctx.textBaseline = 'middle';
    const wide = ctx.measureText(text).width + 6 * ratio, high = LABEL_HIGH * ratio;
    ctx.globalAlpha = 0.85;
    ctx.fillStyle = colour('surface');
    ctx.fillRect(align === 'right' ? x - wide + 3 * ratio : x - 3 * ratio, y - high / 2, wide, high);
    ctx.globalAlpha = 1;
    ctx.fillStyle = colour(name);
    ctx.fillText(text, x, y);
}

function placeOf(u, mark) {
    const { bbox } = u, across = mark.y != null;
    const at = Math.round(u.valToPos(across ? mark.y : mark.x, across ? 'y' : 'x', true));
    const low = across ? bbox.top : bbox.left, high = low + (across ? bbox.height : bbox.width);
    return { mark, across, at, seen: at >= low && at <= high };
}

function drawLine(u, { mark, across, at }) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    ctx.strokeStyle = colour(mark.colour ?? 'muted');
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(across ? bbox.left : at, across ? at : bbox.top);
    ctx.lineTo(across ? bbox.left + bbox.width : at, across ? at : bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
}

/* Each in a row of its own, where lines stand; of lines that lie, above or below. */
function drawName(u, { mark, across, at }, row) {
    const { bbox } = u, ratio = devicePixelRatio, tint = mark.colour ?? 'muted';
    if (across) {
        const y = Math.max(bbox.top + LABEL_HIGH / 2 * ratio, Math.min(bbox.top + bbox.height - LABEL_HIGH / 2 * ratio, at + (mark.below ? 10 : -10) * ratio));
        label(u, mark.text, bbox.left + bbox.width - 4 * ratio, y, 'right', tint);
        return;
    }
    const right = at > bbox.left + bbox.width * 0.72;
    label(u, mark.text, at + (right ? -5 : 5) * ratio, bbox.top + (10 + 17 * row) * ratio, right ? 'right' : 'left', tint);
}

/* All lines first: none goes through the name of another one. */
function drawMarks(u, marks) {
    const places = marks.map((mark) => placeOf(u, mark));
    places.filter((place) => place.seen).forEach((place) => drawLine(u, place));
    places.forEach((place, row) => place.seen && drawName(u, place, row));
}

function drawRings(u, rings) {
    const { ctx } = u, ratio = devicePixelRatio;
    for (const ring of rings) {
        const x = u.valToPos(ring.x, 'x', true), y = u.valToPos(ring.y, 'y', true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width || y < u.bbox.top - 2) continue;
        ctx.strokeStyle = colour('data');
        ctx.lineWidth = 2 * ratio;
        ctx.beginPath();
        ctx.arc(x, y, 4.5 * ratio, 0, 7);
        ctx.stroke();
    }
}

/* ---- what is longer than the chart is high ---- */

/* above: { x, y } of all that could be. An arrow at the upper end for each that is. */
function drawAbove(u, above) {
    const { ctx, bbox } = u, ratio = devicePixelRatio, most = u.scales.y.max, size = 5 * ratio;
    ctx.fillStyle = colour('warning');
    for (const { x, y } of above) {
        const at = u.valToPos(x, 'x', true);
        if (y <= most || at < bbox.left || at > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at + size, bbox.top + 1.6 * size);
        ctx.lineTo(at - size, bbox.top + 1.6 * size);
        ctx.fill();
    }
}

function aboveWords(above, top, what) {
    const left = above.filter(({ y }) => y > top), longest = left.reduce((most, { y }) => Math.max(most, y), 0);
    if (!left.length) return '';
    return left.length === 1 ? `One ${what} of ${time(longest)} is above the chart, marked ▲.`
        : `${count(left.length)} ${what}s are above the chart, marked ▲, the longest with ${time(longest)}.`;
}

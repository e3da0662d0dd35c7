/* dom.js - elements. All text goes in as text: whatever a name holds, it is never markup. */

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

/* heads: names, or [name, class]. rows: arrays of cells; the first is the row's name. */
function table(heads, rows, caption) {
    const classes = heads.map((head) => (Array.isArray(head) ? head[1] : null));
    const names = heads.map((head) => (Array.isArray(head) ? head[0] : head));
    const body = el('tbody', null, rows.map((cells) => el('tr', null, cells.map((cell, i) =>
        (i === 0 ? el('th', { scope: 'row', class: classes[0] ?? '' }, cell) : el('td', { class: classes[i] ?? '' }, cell))))));
    shortenNames([...body.rows]);
    return el('div', { class: 'scroll' }, el('table', null, caption && el('caption', null, caption),
        el('thead', null, el('tr', null, names.map((name, i) => el('th', { scope: 'col', class: classes[i] ?? '' }, name)))), body));
}

function card(title, note, ...children) {
    return el('div', { class: 'card' }, title && el('h3', null, title), note && el('p', null, note), children);
}

function facts(pairs) {
    return el('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== '' && value != null)
        .map(([name, value]) => [el('dt', null, name), el('dd', null, value)]));
}

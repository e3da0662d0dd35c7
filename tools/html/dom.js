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

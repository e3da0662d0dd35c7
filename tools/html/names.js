/* names.js - names of any length: what is too long for a page is cut where it says the least, and is told whole where one points at it. */

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

/* tree.js - the call tree: regions in those that they were called in; rows that open and close. */

const TREE_OPEN = 0.05, TREE_ROWS = 400;

/* Rows in preorder become nodes. */
function treeOf(rows) {
    const root = { inner: [], depth: -1, open: true }, around = [root];
    for (const row of rows) {
        while (around.at(-1).depth >= row.depth) around.pop();
        const node = { ...row, inner: [], open: false };
        around.at(-1).inner.push(node);
        around.push(node);
    }
    return root;
}

function treeSection(report) {
    const rows = report.tree ?? [];
    if (!rows.length) return;
    const root = treeOf(rows), total = root.inner.reduce((sum, node) => sum + node.time, 0) || 1;
    const host = el('div'), columns = [['calls', 'Calls'], ['time', 'Time'], ['self', 'Self']];
    let by = 'time';
    const openLarge = (node) => {
        node.open = node.depth < 0 || node.time >= TREE_OPEN * total;
        node.inner.forEach(openLarge);
    };
    const sort = (node) => {
        node.inner.sort((a, b) => b[by] - a[by]);
        node.inner.forEach(sort);
    };
    const visible = (node, list) => {
        for (const inner of node.inner) {
            list.push(inner);
            if (inner.open) visible(inner, list);
        }
        return list;
    };
    const name = (node) => {
        const text = [swatch(node.kind), node.name];
        const cell = el('span', { class: 'branch' }, node.inner.length
            ? el('button', { type: 'button', class: 'name', 'aria-expanded': String(node.open), 'data-path': node.id,
                onclick: () => { node.open = !node.open; show(node.id); } }, el('span', { 'aria-hidden': 'true' }, node.open ? '▾ ' : '▸ '), text)
            : text);
        cell.style.paddingLeft = `${Math.min(node.depth, 24) * 14 + (node.inner.length ? 0 : 14)}px`;
        return cell;
    };
    const show = (focus) => {
        const all = visible(root, []), shown = all.slice(0, TREE_ROWS);
        const heads = columns.map(([key, text]) => el('button', { type: 'button', class: 'name', 'data-sort': key,
            onclick: () => { by = key; sort(root); show(`sort ${key}`); } }, text + (by === key ? ' ↓' : '')));
        host.replaceChildren(table(['Region', ...heads, 'Share'], shown.map((node) => [name(node), count(node.calls), time(node.time), time(node.self),
            [percent(node.time / total), bar(node.time / total, node.kind)]])));
        host.querySelectorAll('thead th').forEach((th, i) => {
            if (columns[i - 1]?.[0] === by) th.setAttribute('aria-sort', 'descending');
        });
        if (shown.length < all.length) host.append(el('p', null, `and ${count(all.length - shown.length)} more rows: close some.`));
        const again = focus?.startsWith('sort ') ? `[data-sort="${focus.slice(5)}"]` : `[data-path="${focus}"]`;
        if (focus) host.querySelector(again)?.focus();
    };
    let next = 0;
    const number = (node) => node.inner.forEach((inner) => { inner.id = `t${next++}`; number(inner); });
    number(root);
    openLarge(root);
    sort(root);
    const all = (open) => () => {
        const set = (node) => node.inner.forEach((inner) => { inner.open = open; set(inner); });
        set(root);
        show();
    };
    section('tree', 'Call tree', 'Of all threads: a region in those that it was called in. Time is with what is inside, self without.').append(
        card(null, null, el('div', { class: 'tools' }, el('button', { type: 'button', onclick: all(true) }, 'Open all'),
            el('button', { type: 'button', onclick: all(false) }, 'Close all')), host));
    show();
}

/* marks.js - what a chart says beside its data: lines with a name, shaded parts, rings, and what is above its end. */

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

/* job_ranks.js - ranks beside each other: by how much each is late, the latest first. */

const LATE_FROM = 0.03, RANKS_SHOWN = 12, RANKS_MOST = 200;

function whisker(rank, verdict, most) {
    const share = (value) => `${100 * Math.max(0, Math.min(1, value / most))}%`;
    const inside = el('i', { class: verdict ? 'late' : '' });
    inside.style.width = share(rank.late);
    const range = verdict && el('i', { class: 'range' });
    if (range) {
        range.style.left = share(verdict.late_low);
        range.style.width = share(verdict.late_high - Math.max(0, verdict.late_low));
    }
    return el('span', { class: 'whisker', 'aria-hidden': 'true' }, inside, range);
}

function lateRow(rank, one, most) {
    const verdict = one.accused.get(rank.rank);
    return [one.button(rank.rank), signed(percent(rank.late), rank.late), whisker(rank, verdict, most),
        verdict ? `${percent(verdict.late_low)} to ${percent(verdict.late_high)}` : DASH,
        verdict ? time(verdict.cost) : DASH, verdict?.stage ?? DASH, rank.host];
}

function lateList(ranks, one) {
    const host = el('div', { id: 'late' }), highest = [...one.accused.values()].map((v) => v.late_high);
    const most = Math.max(LATE_FROM, ranks[0].late, ...highest);
    const show = (limit) => {
        const shown = ranks.slice(0, limit);
        host.replaceChildren(table(['Rank', 'Late', ['', 'words'], 'Surely', 'Costs the job per step', ['Stage', 'words'], 'Host'],
            shown.map((rank) => lateRow(rank, one, most))));
        const next = Math.min(ranks.length, RANKS_MOST);
        if (shown.length < next) host.append(el('button', { type: 'button', onclick: () => show(next) }, `Show ${next < ranks.length ? 'the first' : 'all'} ${count(next)}`));
    };
    show(RANKS_SHOWN);
    return host;
}

function ranksChart(host, ranks, one) {
    const few = ranks.length <= 64, late = ranks.map((rank) => rank.late);
    const chart = new Chart(host, {
        id: 'chart-ranks', title: 'By how much ranks are late', note: 'In order, the latest first. Enter shows the rank.', height: 220,
        x: { ticks: plainTicks, range: (u, min, max) => [Math.min(1, min), max], axis: whole },
        y: { ticks: percentTicks, range: (u, min, max) => [Math.min(-0.01, 1.1 * min), 1.1 * Math.max(LATE_FROM, max)] },
        lines: [{ name: 'late', colour: 'main', points: few }],
        data: [ranks.map((_, i) => i + 1), late],
        marks: [{ y: LATE_FROM, text: `late from ${percent(LATE_FROM)} on`, colour: 'against' }],
        rings: ranks.flatMap((rank, i) => (one.accused.has(rank.rank) ? [{ x: i + 1, y: rank.late }] : [])),
        legend: one.accused.size ? [{ name: 'called late', colour: 'data', shape: 'ring' }] : [],
        tip: (i) => ({ title: `Rank ${ranks[i].rank}`, rows: [['late', lateWords(ranks[i], one.accused.get(ranks[i].rank))], ['host', ranks[i].host]] }),
        table: { head: ['Place', 'Rank', 'Late', 'Host'], row: (i) => [String(i + 1), String(ranks[i].rank), signed(percent(late[i]), late[i]), ranks[i].host] },
    });
    chart.area.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' && chart.at != null) one.open(ranks[chart.at].rank);
    });
}

function ranksSection(job, drawn, one) {
    const ranks = job.ranks.filter((rank) => rank.late != null).toSorted((a, b) => b.late - a.late || a.rank - b.rank);
    const left = job.job.ranks - job.ranks.length;
    const node = section('ranks', 'Ranks beside each other', ranks.length
        ? 'The median over the blocks of steps of: own time for the same work, against the median of the ranks with the same stages.'
        : 'Nobody could be judged: the verdicts say why.');
    if (!ranks.length) return;
    const host = card(null, left > 0 ? `The ${count(job.ranks.length)} latest ranks; ${count(left)} others are not on this page.` : null);
    node.append(host);
    if (ranks.length > 1) ranksChart(host, ranks, one);
    host.append(lateList(ranks, one));
}

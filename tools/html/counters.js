/* counters.js - counters over the run, in small multiples. */

function counterChart(counter, index, host) {
    const points = counter.series, format = (v) => amount(v, counter.unit);
    const merged = points.some((p) => p[1] > 1), ends = [counter.value.min, counter.value.max];
    const pad = (ends[1] - ends[0]) * 0.08 || Math.abs(ends[1]) * 0.1 || 1;
    const low = ends[0] >= 0 && ends[0] < 0.5 * ends[1] ? 0 : ends[0] - pad;
    new Chart(host, {
        id: `chart-counter-${index}`, title: counter.name, height: 170,
        note: `${format(ends[0])} to ${format(ends[1])}, p50 ${format(counter.value.p50)}, last ${format(counter.last)}`,
        x: { ticks: timeTicks, range: (u, min, max) => (max > min ? [min, max] : [min - 1, max + 1]) },
        y: { ticks: counter.unit === 'bytes' ? byteTicks : plainTicks, range: () => [low, ends[1] + pad] },
        lines: [...(merged ? [{ name: 'largest', colour: 'main', fill: 'band', width: 0 }, { name: 'smallest', colour: 'main', fill: 'surface', width: 0 }] : []),
            { name: 'mean', colour: 'main', points: points.length < 30 }],
        data: [points.map((p) => p[0]), ...(merged ? [points.map((p) => p[4]), points.map((p) => p[2])] : []), points.map((p) => p[3])],
        tip: (i) => ({ title: time(points[i][0]), rows: [[merged ? 'mean' : 'value', format(points[i][3]), 'main', 'line'],
            ...(merged ? [['smallest', format(points[i][2])], ['largest', format(points[i][4])], ['samples', count(points[i][1])]] : [])] }),
        table: { head: ['At', 'Samples', 'Smallest', 'Mean', 'Largest'],
            row: (i) => [time(points[i][0]), count(points[i][1]), format(points[i][2]), format(points[i][3]), format(points[i][4])] },
    });
}

function counterSection(report) {
    const counters = report.counters.filter((counter) => counter.value.count);
    if (!counters.length) return;
    const drawn = counters.filter((counter) => counter.series?.length), grid = el('div', { class: 'grid' });
    const node = section('counters', 'Counters', 'Over the run, from its start; where a point stands for several samples, their mean and from the smallest to the largest.');
    node.append(grid);
    drawn.forEach((counter, i) => {
        const host = card(null, null);
        grid.append(host);
        counterChart(counter, i, host);
    });
    const rest = counters.filter((counter) => !counter.series?.length);
    if (rest.length) {
        node.append(card(null, null, table(['Counter', 'Samples', 'Smallest', 'p50', 'p99', 'Largest', 'Last'], rest.map((c) => [
            c.name, count(c.value.count), ...['min', 'p50', 'p99', 'max'].map((q) => amount(c.value[q], c.unit)), amount(c.last, c.unit)]))));
    }
}

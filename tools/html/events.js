/* events.js - what the processor and the kernel counted in sampled calls: instructions per cycle and misses of each
 * region, with the share of calls that it is known from and its error; before and after. */

const EVENT_ROWS = 30;

/* What is below 0 is not known. */
const counted = (value, format = (v) => amount(v, '')) => (known(value) && value >= 0 ? format(value) : DASH);

function eventCell(row, key, format) {
    const error = sampleError(row[`${key}_error`], row[key], format === percent);
    return [counted(row[key], format), error && el('span', { class: 'meta' }, error)];
}

function eventHead(row) {
    return [row.region, count(row.calls), row.calls ? percent(row.sampled / row.calls) : DASH];
}

const HARDWARE = [['ipc', 'IPC'], ['cache_misses_per_1000', 'Cache misses'], ['branch_misses_per_1000', 'Branch misses'],
    ['instructions', 'Instructions'], ['cycles', 'Cycles']];
const SOFTWARE = [['processor_time', 'On a processor', time], ['page_faults', 'Page faults'], ['context_switches', 'Switches'], ['migrations', 'Migrations']];
const TOPDOWN = [['slots', 'Slots'], ...SLOT_SHARES.map(([key, name]) => [key, name, percent])];

function eventTable(title, note, rows, figures) {
    const shown = rows.filter((row) => figures.some(([key]) => row[key] >= 0));
    if (!shown.length) return null;
    return card(title, note, table(['Region', 'Calls', 'Sampled', ...figures.map(([, name]) => name)],
        shown.slice(0, EVENT_ROWS).map((row) => [...eventHead(row), ...figures.map(([key, , format]) => eventCell(row, key, format))]),
        shown.length > EVENT_ROWS ? `The first ${count(EVENT_ROWS)} of ${count(shown.length)}, by time.` : null));
}

function eventFacts(events, rows, report) {
    const missed = rows.reduce((sum, row) => sum + row.missed, 0), sampled = rows.reduce((sum, row) => sum + row.sampled, 0);
    return facts([['Hardware', events.why_not_hardware], ['Software', events.why_not_software], ['Top-down', events.why_not_topdown],
        ['What it took', report.run.cpu ? `${percent(events.spent / report.run.cpu)} of the CPU time, of ${percent(events.bound)} that it may` : ''],
        ['Threads without', events.threads_without ? `${count(events.threads_without)}: ${events.why_threads}` : ''],
        ['Threads lost', events.threads_lost ? count(events.threads_lost) : ''],
        ['Calls without figures', missed ? `${count(missed)}, beside ${count(sampled)} that have them` : '']]);
}

function eventSection(report) {
    const { events } = report, rows = events?.rows ?? [];
    if (!events?.asked) return;
    section('events', 'Events a call', 'Means over sampled calls, with what is inside them. ±: 95\u202f% of samples would be as near.',
        eventTable('By the processor', 'Misses: in 1\u202f000 instructions. In user mode.', rows, HARDWARE),
        eventTable('By the kernel', null, rows, SOFTWARE),
        eventTable('By what became of pipeline slots', 'In user mode; of the slots that the thread had.',
            rows.filter((row) => row.slots > 0), TOPDOWN),
        card(null, null, eventFacts(events, rows, report)));
}

/* ---- before and after ---- */

/* By more than both errors together, which are independent. */
function beyondErrors(now, then, errors) {
    return errors.every((error) => error >= 0) && Math.abs(now - then) > Math.hypot(...errors);
}

function eventChange(row, other, key, moreIsBetter) {
    const now = row[key], then = other[key], errors = [row[`${key}_error`], other[`${key}_error`]];
    if (!(now >= 0) || !(then > 0)) return DASH;
    if (!beyondErrors(now, then, errors)) return 'within the error';
    return el('span', { class: (moreIsBetter ? now < then : now > then) ? 'less' : 'more' }, change(now, then));
}

const COMPARED = [['ipc', 'IPC', true], ['cache_misses_per_1000', 'Cache misses', false], ['branch_misses_per_1000', 'Branch misses', false],
    ['processor_time', 'On a processor', false, time], ...SLOT_SHARES.map(([key, name]) => [key, name, key === 'retiring', percent])];

function eventsBeside(a, b) {
    const others = new Map((b.events?.rows ?? []).map((row) => [row.region, row]));
    const pairs = (a.events?.rows ?? []).map((row) => [row, others.get(row.region)]).filter(([, other]) => other);
    const figures = COMPARED.filter(([key]) => pairs.some(([row, other]) => row[key] >= 0 && other[key] >= 0));
    if (!figures.length) return null;
    return card('Events a call of both runs', 'Misses: in 1\u202f000 instructions. A change is told where it is beyond the errors of both samples.', table(
        ['Region', ...figures.flatMap(([, name]) => [name, 'Other', 'Change'])], pairs.slice(0, EVENT_ROWS).map(([row, other]) => [row.region,
            ...figures.flatMap(([key, , more, format]) => [eventCell(row, key, format), eventCell(other, key, format), eventChange(row, other, key, more)])])));
}

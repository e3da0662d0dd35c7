/* format.js - numbers as people read them: three digits and a unit that suits. */

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

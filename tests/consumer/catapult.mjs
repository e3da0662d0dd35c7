// catapult.mjs PAGE TRACE - the model of catapult's trace viewer, the page behind chrome://tracing.

import { readFileSync } from 'node:fs';
import { createContext, runInContext } from 'node:vm';

import { Rows, nowhere, read, tell } from './seen.mjs';

const BEGIN = "'use strict';const global=this.window||this.global;this.tr=";
const ELEMENTS = ['HTMLElement', 'HTMLDivElement', 'HTMLUnknownElement', 'HTMLSpanElement'];

// The page is one script. What comes last in it is for the eye, and fails without a browser.
function load(path) {
    const page = readFileSync(path, 'utf8');
    const script = page.slice(page.indexOf(BEGIN), page.lastIndexOf('</script>'));
    const here = { console, performance, setTimeout, ArrayBuffer, Uint8Array, TextDecoder };
    const scope = createContext({ ...here, isVinn: true });
    scope.global = scope;
    for (const name of ['Polymer', 'document', ...ELEMENTS]) scope[name] = nowhere;
    try {
        runInContext(script, scope);
    } catch (error) {
        if (!scope.tr?.e?.importer?.TraceEventImporter) throw error;
    }
    return scope.tr;
}

// As the page does it: text as text, the rest as bytes.
function look(tr, path) {
    const bytes = read(path), options = new tr.importer.ImportOptions(), model = new tr.Model();
    options.shiftWorldToZero = options.pruneEmptyContainers = false;
    const data = path.endsWith('.gz') ? bytes : new TextDecoder().decode(bytes);
    new tr.importer.Import(model, options).importTraces([data]);
    return model;
}

const slices = new Rows(), args = new Rows(), tracks = [], values = [];

function see(thread, slice) {
    let depth = 0;
    for (let s = slice.parentSlice; s; s = s.parentSlice) depth++;
    slices.add(1, thread.name, slice.title, slice.parentSlice?.title ?? null, depth);
    for (const [key, value] of Object.entries(slice.args)) args.add(value, slice.title, key);
}

const tr = load(process.argv[2]);
console.log = console.warn = () => {};
const model = look(tr, process.argv[3]);
for (const process of model.getAllProcesses()) {
    for (const thread of Object.values(process.threads)) {
        tracks.push(thread.name);
        thread.sliceGroup.slices.forEach((slice) => see(thread, slice));
    }
    for (const counter of Object.values(process.counters))
        for (const { name, samples } of counter.series)
            samples.forEach((sample) => values.push([`${counter.name} ${name}`, sample.value]));
}
await tell({
    errors: model.importWarnings.map((warning) => `${warning.type}: ${warning.message}`),
    processes: model.getAllProcesses().map((process) => process.name),
    tracks,
    slices: slices.list(),
    values,
    arguments: args.list(),
});

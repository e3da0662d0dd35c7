// catapult.mjs PAGE TRACE... - the model of catapult's trace viewer, the page behind chrome://tracing.

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
function read_model(tr, path) {
    const bytes = read(path), options = new tr.importer.ImportOptions(), model = new tr.Model();
    options.shiftWorldToZero = options.pruneEmptyContainers = false;
    const data = path.endsWith('.gz') ? bytes : new TextDecoder().decode(bytes);
    new tr.importer.Import(model, options).importTraces([data]);
    return model;
}

function see_slice(seen, thread, slice) {
    let depth = 0;
    for (let s = slice.parentSlice; s; s = s.parentSlice) depth++;
    seen.slices.add(1, thread.name, slice.title, slice.parentSlice?.title ?? null, depth);
    for (const [key, value] of Object.entries(slice.args)) seen.args.add(value, slice.title, key);
}

function see_process(seen, process) {
    for (const thread of Object.values(process.threads)) {
        seen.tracks.push(thread.name);
        thread.sliceGroup.slices.forEach((slice) => see_slice(seen, thread, slice));
        thread.asyncSliceGroup.slices.forEach((slice) => seen.others.add(1, slice.title));
    }
    process.instantEvents.forEach((mark) => seen.others.add(1, mark.title));
    for (const counter of Object.values(process.counters))
        for (const { name, samples } of counter.series)
            samples.forEach((sample) => seen.values.push([`${counter.name} ${name}`, sample.value]));
}

function look(tr, path) {
    const seen = { slices: new Rows(), others: new Rows(), flows: new Rows(), args: new Rows(), tracks: [], values: [] };
    const model = read_model(tr, path), processes = model.getAllProcesses();
    processes.forEach((process) => see_process(seen, process));
    for (const flow of model.flowEvents)
        seen.flows.add(1, flow.startSlice?.title ?? null, flow.endSlice?.title ?? null);
    return {
        errors: model.importWarnings.map((warning) => `${warning.type}: ${warning.message}`),
        processes: processes.map((process) => process.name),
        tracks: seen.tracks,
        slices: seen.slices.list(),
        others: seen.others.list(),
        flows: seen.flows.list(),
        values: seen.values,
        arguments: seen.args.list(),
    };
}

const tr = load(process.argv[2]);
console.log = console.warn = () => {};
await tell(process.argv.slice(3).map((path) => look(tr, path)));

// speedscope.mjs FOLDER TRACE... - the importer of speedscope, taken out of its page.

import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { runInThisContext } from 'node:vm';

import { Rows, nowhere, read, tell } from './seen.mjs';

const IMPORTERS = /var (\w+)=Promise\.resolve\(\)\.then\(\(\)=>\((\w+)\(\),(\w+)\)\);\1\.then/;

// The page's script, up to where it has its importers and before it asks for a canvas.
function importers() {
    const folder = process.argv[2];
    const name = readdirSync(folder).find((file) => /^speedscope-.*\.js$/.test(file));
    const script = readFileSync(join(folder, name), 'utf8');
    const found = IMPORTERS.exec(script);
    const leave = `globalThis.here=(${found[2]}(),${found[3]});return;`;
    for (const thing of ['window', 'document', 'location']) globalThis[thing] ??= nowhere;
    runInThisContext(script.slice(0, found.index) + leave + script.slice(found.index));
    return globalThis.here;
}

// Of slices with one name that end at one moment it may confuse the arguments: each ends where it
// should.
const harmless = (text) => /^ts=.* Ending .* instead\.$/s.test(text);

// A frame's name is the event's, then its arguments.
const plain = (frame) => frame.name.replace(/ \{".*\}$/s, '');

function walk(profile, track, slices) {
    const path = [];
    profile.forEachCall(
        (node) => {
            const name = plain(node.frame);
            slices.add(1, track, name, path.at(-1) ?? null, path.length);
            path.push(name);
        },
        () => path.pop(),
    );
}

async function look(importer, path) {
    const errors = [], tracks = [], processes = new Set(), slices = new Rows();
    console.warn = (text) => harmless(text) || errors.push(text);
    const group = await importer.importProfilesFromArrayBuffer(basename(path), read(path));
    for (const profile of group?.profiles ?? []) {
        const parts = /^(.*) \(pid \d+\), (.*) \(tid \d+\)$/s.exec(profile.getName());
        const [program, track] = parts ? parts.slice(1) : ['', profile.getName()];
        processes.add(program);
        tracks.push(track);
        walk(profile, track, slices);
    }
    if (!group) errors.push('takes it for nothing that it knows');
    return { errors, processes: [...processes], tracks, slices: slices.list() };
}

const importer = importers(), seen = [];
console.log = () => {};
for (const path of process.argv.slice(3)) seen.push(await look(importer, path));
await tell(seen);

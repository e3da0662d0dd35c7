// perfetto.mjs FOLDER TRACE... - Perfetto's trace processor, the engine behind ui.perfetto.dev.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';

import { read, tell } from './seen.mjs';

const folder = process.argv[2];

// The engine's script expects to be a worker: its wasm comes from a server, its requests come
// through a port.
class FromFile {
    open(method, name) {
        this.name = name;
    }

    send() {
        this.response = read(join(folder, this.name));
    }
}

// Where there are 64-bit memories, as in newer versions of node, it would want another file.
const MEMORY_SECTION = 5;

class SmallModule extends WebAssembly.Module {
    constructor(bytes) {
        if (bytes[8] === MEMORY_SECTION) throw new Error('no 64-bit memories');
        super(bytes);
    }
}

async function start() {
    const { EngineBase } = await import(pathToFileURL(join(folder, 'engine.mjs')).href);
    class Engine extends EngineBase {
        id = 'here';
        mode = 'WASM';
        port = { postMessage: (data) => this.onRpcResponseBytes(data) };

        rpcSendRequestBytes(data) {
            this.port.onmessage({ data });
        }
    }
    const worker = { self: globalThis, WorkerGlobalScope: class {}, XMLHttpRequest: FromFile };
    Object.assign(globalThis, worker, { location: { href: pathToFileURL(folder).href } });
    WebAssembly.Module = SmallModule;
    runInThisContext(readFileSync(join(folder, 'engine_bundle.node.js'), 'utf8'));
    const engine = new Engine();
    globalThis.onmessage({ data: engine.port });
    await new Promise((done) => setImmediate(done));
    return engine;
}

async function ask(engine, sql) {
    const result = await engine.query(sql), names = result.columns(), rows = [];
    const plain = (value) => (typeof value === 'bigint' ? Number(value) : value);
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(names.map((name) => plain(row.get(name))));
    return rows;
}

const SQL = {
    errors: `
        select name || ': ' || value from stats
        where severity in ('error', 'data_loss') and value > 0`,
    processes: `
        select name from process where name is not null`,
    tracks: `
        select name from thread where name is not null and tid != 0`,
    total: `
        select count(*) from slice`,
    slices: `
        select thread.name, slice.name, parent.name, slice.depth, count(*)
        from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
        left join slice parent on slice.parent_id = parent.id
        group by 1, 2, 3, 4`,
    values: `
        select process_counter_track.name, value
        from counter join process_counter_track on counter.track_id = process_counter_track.id`,
    others: `
        select slice.name, count(*) from slice left join thread_track on slice.track_id = thread_track.id
        where thread_track.id is null group by 1`,
    flows: `
        select start.name, stop.name, count(*)
        from flow join slice start on slice_out = start.id join slice stop on slice_in = stop.id
        group by 1, 2`,
    arguments: `
        select slice.name, substr(args.key, 6), total(coalesce(int_value, real_value))
        from slice join args using (arg_set_id)
        where args.key glob 'args.*' group by 1, 2`,
};
const SINGLE = ['errors', 'processes', 'tracks'];

async function look(engine, path) {
    const seen = {};
    await engine.resetTraceProcessor({});
    await engine.parse(new Uint8Array(read(path)));
    await engine.notifyEof();
    for (const [what, sql] of Object.entries(SQL)) {
        const rows = await ask(engine, sql);
        seen[what] = SINGLE.includes(what) ? rows.flat() : rows;
    }
    return { ...seen, total: seen.total[0][0] };
}

console.log = console.warn = () => {}; // the engine's chatter
const engine = await start(), seen = [];
for (const path of process.argv.slice(3))
    seen.push(await look(engine, path).catch((error) => ({ errors: [String(error)] })));
await tell(seen);
process.exit(0);

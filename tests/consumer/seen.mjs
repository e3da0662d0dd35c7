// seen.mjs - what a viewer made of a trace, in the form that check.py compares.

import { readFileSync } from 'node:fs';

export function read(path) {
    const bytes = readFileSync(path);
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
}

// Stands for all that a page asks of its browser before it gets to its data.
export const nowhere = new Proxy(function () {}, {
    get(target, key) {
        if (key === Symbol.toPrimitive) return () => '';
        return key === 'prototype' ? target.prototype : nowhere;
    },
    set: () => true,
    apply: () => nowhere,
    construct: () => nowhere,
});

// Adds up rows that have the same parts.
export class Rows {
    rows = new Map();

    add(number, ...parts) {
        const key = JSON.stringify(parts);
        this.rows.set(key, (this.rows.get(key) ?? 0) + number);
    }

    list() {
        return [...this.rows].map(([key, number]) => [...JSON.parse(key), number]);
    }
}

// Done when all of it is out: who ends the process before that loses some.
export function tell(seen) {
    return new Promise((done) => process.stdout.write(JSON.stringify(seen) + '\n', done));
}

/* job_rank.js - one rank: how late it is, its stages and regions beside the others', its file. */

/* Of a path as the program was told it; what a name holds is never more than a part of a path. */
function fileLink(path, base) {
    const href = (text) => text.split('/').map(encodeURIComponent).join('/');
    return path.startsWith('/') ? `file://${href(path)}` : `./${href(base + path)}`;
}

function lateWords(rank, verdict) {
    if (rank.late == null) return 'not known';
    const by = signed(percent(rank.late), rank.late);
    return verdict ? `${by} (surely ${percent(verdict.late_low)} to ${percent(verdict.late_high)})` : by;
}

function besideMean(own, mean) {
    const by = own - mean;
    return el('span', { class: by > 0.01 * mean ? 'less' : '' }, by === 0 ? time(0) : signed(time(by), by));
}

class JobRank {
    constructor(job, drawn) {
        Object.assign(this, { job, drawn });
        this.at = new Map(job.ranks.map((rank, i) => [rank.rank, i]));
        this.accused = new Map(job.verdicts.filter((v) => v.name === 'late-rank').map((v) => [v.rank, v]));
    }

    /* Its part of the page. */
    place() {
        const move = (by) => () => this.step(by), numbers = this.job.ranks.map((rank) => rank.rank);
        const from = Math.min(...numbers), to = Math.max(...numbers);
        this.field = el('input', { type: 'number', id: 'rank-number', min: from, max: to, step: 1, onchange: () => this.show(Number(this.field.value)) });
        this.body = el('div', { id: 'rank-body', 'aria-live': 'polite' });
        this.node = section('rank', 'One rank', null, card(null, null,
            el('div', { class: 'pick' }, el('label', { for: 'rank-number' }, 'Rank'), this.field,
                el('button', { type: 'button', onclick: move(-1) }, 'Previous'), el('button', { type: 'button', onclick: move(1) }, 'Next')),
            this.body));
        const latest = this.job.ranks.reduce((most, rank) => ((rank.late ?? -1) > (most.late ?? -1) ? rank : most));
        this.show(latest.rank);
    }

    step(by) {
        const at = this.at.get(Number(this.field.value)) ?? 0, last = this.job.ranks.length - 1;
        this.show(this.job.ranks[Math.max(0, Math.min(last, at + by))].rank);
    }

    /* From elsewhere in the page. */
    open(number) {
        this.show(number);
        this.node.scrollIntoView();
        this.field.focus({ preventScroll: true });
    }

    button(number) {
        return el('button', { type: 'button', class: 'name', 'data-rank': number, onclick: () => this.open(number) }, `rank ${number}`);
    }

    show(number) {
        const at = this.at.get(number);
        this.field.value = String(number);
        if (at === undefined) {
            this.body.replaceChildren(el('p', null, this.missing(number)));
            return;
        }
        this.body.replaceChildren(el('div', null, el('h3', null, `Rank ${number}`), this.facts(at), this.stages(at), this.regions(at)));
    }

    missing(number) {
        if (this.job.job.gaps.some(([first, last]) => first <= number && number <= last)) return `There is no file of rank ${number}.`;
        return this.job.job.ranks > this.job.ranks.length ? `Rank ${number} is not among the ${count(this.job.ranks.length)} ranks of this page, the latest ones.`
            : `There is no rank ${number}.`;
    }

    facts(at) {
        const rank = this.job.ranks[at], verdict = this.accused.get(rank.rank);
        return facts([['Late', el('span', { class: verdict ? 'less' : '' }, lateWords(rank, verdict))],
            ['Costs the job', verdict ? `${time(verdict.cost)} per step, most of it in ${verdict.stage}` : ''],
            ['Host', rank.host], ['Local rank', rank.local_rank == null ? '' : String(rank.local_rank)],
            ['Ended', rank.complete ? 'yes' : 'no: the run did not end, or its file is cut off'],
            ['File', rank.file && el('a', { href: fileLink(rank.file, this.drawn.base) }, rank.file)]]);
    }

    rows(values, others, mean) {
        return values.map((own, k) => [own, others(k)]).filter(([own]) => own != null)
            .map(([own, other]) => [[swatch(other.kind), other.stage ?? other.name], time(own), time(mean(other).mean), besideMean(own, mean(other).mean),
                [time(mean(other).max), ' ', bar(own / (mean(other).max || 1), other.kind)]]);
    }

    list(title, first, rows, note) {
        return [el('h4', null, title), note && el('p', { class: 'note' }, note), table([first, 'This rank', 'Mean of ranks', 'Difference', 'Maximum of ranks'], rows)];
    }

    stages(at) {
        const { stages, rank_stages: all } = this.drawn;
        if (!stages.length) return null;
        const rows = this.rows(all[at], (k) => this.job.stages[stages[k]], (stage) => stage.per_step);
        const left = this.drawn.totals.stages - stages.length;
        return this.list('Stages, per step', 'Stage', rows, left > 0 && `Those with the most time; ${count(left)} are left out.`);
    }

    regions(at) {
        const values = this.drawn.rank_regions[at], left = this.drawn.totals.regions - values.length;
        if (!values.length) return null;
        const rows = this.rows(values, (k) => this.job.regions[k], (region) => region.self);
        return this.list('Regions, self time of the run', 'Region', rows,
            left > 0 && `The ${count(values.length)} regions with the most self time of the job; ${count(left)} are left out.`);
    }
}

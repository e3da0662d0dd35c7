/* job_main.js - the page of a job: its data, and its parts in order. */

function jobHead(job, drawn) {
    const { program, world_size: world, ranks, hosts, files } = job.job, name = (program || 'A job').split('/').pop(), out = [];
    document.title = `${name} – perfkit job`;
    if (job.frontier) {
        out.push(tile(time(job.frontier.exposed / job.frontier.steps), 'step of the job, mean'), tile(count(job.frontier.steps), 'steps'));
    }
    if (job.efficiency) out.push(tile(percent(job.efficiency.parallel), 'parallel efficiency'), tile(percent(job.efficiency.load_balance), 'load balance'));
    out.push(tile(drawn.totals.judged ? count(drawn.totals.late) : 'not judged', 'late ranks'));
    if (job.mpi && !job.frontier) {
        const waited = waitedForOthers(job);
        out.push(tile(percent(job.mpi.of_run), 'of the time in MPI'));
        if (waited != null) out.push(tile(time(waited), 'waited for others, all ranks'));
    }
    document.getElementById('head').append(el('h1', null, name), el('p', { class: 'meta' },
        `${count(ranks)} of ${count(world)} ranks on ${count(hosts)} ${hosts === 1 ? 'host' : 'hosts'}, from ${count(files)} ${files === 1 ? 'file' : 'files'}`),
    el('div', { class: 'tiles' }, out));
}

function filesSection(job, drawn) {
    const { notes } = job.job, left = drawn.totals.notes - notes.length;
    if (!notes.length) return;
    section('files', 'Files that are not in it', null, card(null, null, el('ul', null, notes.map((note) => el('li', null, note))),
        left > 0 && el('p', { class: 'note' }, `${count(left)} more are not on this page.`)));
}

function buildJob() {
    const [job, drawn] = ['job', 'drawn'].map((id) => JSON.parse(document.getElementById(id).textContent));
    const one = new JobRank(job, drawn);
    jobHead(job, drawn);
    verdicts({ verdicts: drawn.said });
    againstSection(job, one);
    heatSection(job, drawn, one);
    ranksSection(job, drawn, one);
    frontierSection(job, one);
    efficiencySection(job, one);
    imbalanceSection(job, drawn, one);
    mpiSection(job, one);
    waitsSection(job, one);
    matrixSection(job, drawn);
    jobCommSection(job, drawn, one);
    jobCostSection(job, one);
    jobEventSection(job, one);
    one.place();
    filesSection(job, drawn);
    document.documentElement.dataset.ready = 'yes';
}

buildJob();

/* main.js - the data of the page, and its parts in order. */

function embedded(id) {
    const node = document.getElementById(id);
    return node ? JSON.parse(node.textContent) : null;
}

function build() {
    const report = embedded('run'), against = embedded('against'), files = embedded('files');
    head(report);
    if (report.capture) slowSection(report, embedded('timeline-data'));
    verdicts(report);
    compareSection(report, against, files);
    stepSection(report);
    if (!report.capture) slowSection(report, embedded('timeline-data'));
    regionSection(report, against);
    rooflineSection(report);
    eventSection(report);
    costSection(report);
    treeSection(report);
    requestSection(report);
    spanSection(report);
    gpuSection(report);
    commSection(report);
    counterSection(report);
    detailSection(report, files);
    document.documentElement.dataset.ready = 'yes';
}

build();

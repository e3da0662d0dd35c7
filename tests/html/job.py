"""job.py PK GOLDEN BROWSER FORGE page|data - the page of `pk job --html` in a headless browser, and the data in it."""

import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

from opened import BROKEN, Pages, UNTOLD, chromium, scene

PK, FORGE = map(os.path.abspath, (sys.argv[1], sys.argv[4]))


# ---- forged jobs, their pages, and what is in both ----

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
WAITING = ("comm", "wait")


def forge(program, folder, **numbers):
    """The ranks that are slow."""
    os.mkdir(folder)
    done = subprocess.run([program, folder, *(f"{key}={value}" for key, value in numbers.items())], check=True, capture_output=True, text=True, timeout=300)
    return [int(line) for line in done.stdout.split()]


def files_in(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


def pk_job(pk, *arguments, **more):
    return subprocess.run([pk, "job", *arguments], capture_output=True, text=True, timeout=300, check=False, **more)


def write_page(pk, path, *arguments, **more):
    done = pk_job(pk, "--html", path, *arguments, **more)
    if (done.returncode, done.stdout, done.stderr) != (0, "", ""):
        raise AssertionError(done)
    return path


def without_charts(pk):
    done = pk_job(pk, "--html", "-", "/nowhere")
    return "built without" in done.stderr


def embedded(path, name):
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', file.read(), re.DOTALL).group(1))


def cells_of(text):
    return [64 * DIGITS.index(a) + DIGITS.index(b) for a, b in zip(text[::2], text[1::2])]


class Rank:
    """A rank's file as it is."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.report = json.load(file)
        stages, width = self.report["stages"], self.report["stages"]["width"]
        blocks = stages["loops"][0]["blocks"]
        self.rank = self.report["run"]["rank"]
        self.stages = stages["names"]
        self.blocks = [blocks[i:i + width] for i in range(0, len(blocks), width)]

    def step(self, block):
        _, steps, took, _ = self.blocks[block][:4]
        return took / steps

    def own(self, block):
        """For the same work."""
        _, _, took, items = self.blocks[block][:4]
        waited = sum(ns for stage, ns in zip(self.stages, self.blocks[block][4:]) if stage["kind"] in WAITING)
        return (took - waited) / items

    def stage(self, at):
        return sum(block[4 + at] for block in self.blocks) / sum(block[1] for block in self.blocks)


def heat_of(ranks, figure, per_row):
    """Thousandths of the median, rows of `per_row` ranks, the largest of each."""
    rows = []
    for block in range(len(ranks[0].blocks)):
        values = [figure(rank, block) for rank in ranks]
        middle = statistics.median(values)
        shown = [math.floor(1000 * value / middle + 0.5) for value in values]
        rows.append([max(shown[i:i + per_row]) for i in range(0, len(shown), per_row)])
    return [column[row] for row in range(len(rows[0])) for column in rows]


# ---- how the page writes figures (tools/html/common.js) ----

def digits_of(value):
    size = abs(value)
    return f"{value:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def time_text(ns):
    size, unit = float(ns), 0
    while abs(size) >= 999.5 and unit < 3:
        size /= 1000
        unit += 1
    return (str(int(size)) if unit == 0 and size == int(size) else digits_of(size)) + "\u202f" + ("ns", "µs", "ms", "s")[unit]


def percent_text(share):
    value, size = 100 * share, abs(100 * share)
    if 0 < size < 0.005:
        return "<0.01\u202f%"
    return f"{value:.{0 if size == 0 else 2 if size < 0.995 else 1 if size < 99.95 else 0}f}\u202f%"


def signed_text(share):
    return "+" + percent_text(share) if share > 0 else percent_text(share).replace("-", "−")


# ---- what is in the page of `pk job --html` ----

# The job as in --json, the heat map as the ranks' files have it, nothing beyond its bounds. Exit
# status 77: this pk was built without charts.


class JobData(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def forged(self, **numbers):
        slow = forge(FORGE, self.path("job"), **numbers)
        page = write_page(PK, self.path("page.html"), self.path("job"))
        wanted = json.loads(pk_job(PK, "--json", self.path("job")).stdout)
        return slow, page, wanted

    def check_ranks(self, drawn, wanted):
        """Each rank's figures beside those of all of them."""
        self.assertEqual(len(drawn["rank_stages"]), len(wanted["ranks"]))
        for k, at in enumerate(drawn["stages"]):
            spread, column = wanted["stages"][at]["per_step"], [row[k] for row in drawn["rank_stages"]]
            there = [ns for ns in column if ns is not None]
            self.assertEqual(len(there), spread["ranks"])
            if there:
                self.assertAlmostEqual(max(there), spread["max"], delta=1)
                self.assertAlmostEqual(min(there), spread["min"], delta=1)
                self.assertAlmostEqual(sum(there) / len(there), spread["mean"], delta=1)
        for k in range(len(drawn["rank_regions"][0])):
            spread, column = wanted["regions"][k]["self"], [row[k] for row in drawn["rank_regions"]]
            self.assertEqual(column[wanted["ranks"].index(next(r for r in wanted["ranks"] if r["rank"] == spread["max_rank"]))], max(column))
            self.assertAlmostEqual(max(column), spread["max"], delta=1)

    def check_heat(self, heat, per_row):
        ranks = sorted((Rank(path) for path in files_in(self.path("job"))), key=lambda rank: rank.rank)
        self.assertTrue(heat["by_work"])
        self.assertEqual((heat["ranks_per_row"], heat["blocks_per_column"]), (per_row, 1))
        self.assertEqual(heat["first_steps"], [block[0] for block in ranks[0].blocks])
        self.assertEqual([row[0] for row in heat["ranks"]], list(range(0, len(ranks), per_row)))
        for name, figure in ("step", Rank.step), ("own", Rank.own):
            shown, wanted = cells_of(heat[name]), heat_of(ranks, figure, per_row)
            self.assertEqual(len(shown), len(wanted))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(shown, wanted)), 1, name)
        for k, stage in enumerate(ranks[0].stages):
            self.assertGreater(ranks[0].stage(k), 0, stage)

    def test_the_data_is_the_job(self):
        for ranks in 4, 8:
            with self.subTest(ranks=ranks):
                self.setUp()
                _, page, wanted = self.forged(ranks=ranks, culprits=1, slow=0.1, per_host=4, regions=5, calls=50)
                self.assertEqual(embedded(page, "job"), wanted)
                drawn = embedded(page, "drawn")
                self.check_ranks(drawn, wanted)
                self.check_heat(drawn["heat"], 1)

    def test_4096_ranks(self):
        slow, page, wanted = self.forged(ranks=4096, culprits=2, slow=0.2, per_host=8, regions=12, calls=5)
        self.assertLess(os.path.getsize(page), 2_200_000)
        self.assertEqual(embedded(page, "job"), wanted)
        drawn = embedded(page, "drawn")
        self.check_ranks(drawn, wanted)
        self.check_heat(drawn["heat"], 11)
        self.assertEqual(len(drawn["heat"]["ranks"]), 373)
        for rank in slow:
            self.assertEqual(drawn["heat"]["ranks"][rank // 11][2], rank)

    def test_what_is_left_out_is_counted(self):
        """More ranks than are listed, more regions than are in the tables."""
        slow, page, wanted = self.forged(ranks=4200, culprits=1, slow=0.3, steps=30)
        job, drawn = embedded(page, "job"), embedded(page, "drawn")
        self.assertEqual((job["job"]["ranks"], len(job["ranks"]), len(drawn["rank_stages"])), (4200, 4096, 4096))
        numbers = [rank["rank"] for rank in job["ranks"]]
        self.assertEqual(numbers, sorted(numbers))
        self.assertIn(slow[0], numbers)
        left = [rank["late"] for rank in wanted["ranks"] if rank["rank"] not in set(numbers)]
        self.assertLessEqual(max(left), min(rank["late"] for rank in job["ranks"]))
        self.assertEqual(job["verdicts"], wanted["verdicts"])

    def test_many_regions(self):
        _, page, wanted = self.forged(ranks=4, regions=250, calls=5)
        job, drawn = embedded(page, "job"), embedded(page, "drawn")
        self.assertEqual((len(job["regions"]), drawn["totals"]["regions"]), (200, 250))
        self.assertEqual(job["regions"], wanted["regions"][:200])
        self.assertEqual([len(row) for row in drawn["rank_regions"]], [200] * 4)

    def test_of_one_rank_or_without_steps(self):
        forge(FORGE, self.path("one"), ranks=1)
        write_page(PK, self.path("one.html"), self.path("one"))
        forge(FORGE, self.path("none"), ranks=4, steps=0, regions=2, calls=5)
        page = write_page(PK, self.path("none.html"), self.path("none"))
        self.assertNotIn("heat", embedded(page, "drawn"))

    def test_to_standard_output(self):
        forge(FORGE, self.path("job"), ranks=4)
        page = write_page(PK, self.path("page.html"), self.path("job"))
        done = pk_job(PK, "--html", "-", self.path("job"))
        with open(page, encoding="utf-8") as file:
            # But for the way from the page to the files.
            self.assertEqual(done.stdout.split('{"base":')[0], file.read().split('{"base":')[0])
        self.assertTrue(done.stdout.endswith("</html>\n"))

    def test_what_is_wrong_is_said(self):
        forge(FORGE, self.path("job"), ranks=2)
        job = self.path("job")
        for arguments, says in ((["--html", "x.html", "--json", job], "--html or --json"), (["--html", "x.html", "--against", self.path("gone"), job], "gone"),
                                (["--html", "x.html", "--against-steps", "900-950", job], "900-950"), (["--html"], "--html needs a file"),
                                (["--html", "/nowhere/x.html", job], "/nowhere/x.html: No such"), (["--html", self.folder, job], "is a directory"),
                                (["--html", "x.html", self.path("gone")], "gone")):
            done = pk_job(PK, *arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(says, done.stderr)
        self.assertFalse(os.path.exists(self.path("x.html")))


# ---- on the page of a job ----

# Events of calls and memory of devices, over its ranks and beside another job's.

CELLS = "[...document.querySelectorAll('{} tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"


def counted(rank, ipc):
    return {"region": "backward", "calls": 100, "sampled": 20, "missed": 0, "time": 10 ** 8, "instructions": 1e6 * ipc, "instructions_error": 0,
            "cycles": 1e6, "cycles_error": 0, "cache_misses": -1, "branch_misses": -1, "ipc": ipc + rank / 10, "ipc_error": 0.04,
            "cache_misses_per_1000": -1, "branch_misses_per_1000": -1, "processor_time": -1, "slots": 4e6, "retiring": ipc / 4, "retiring_error": 0.01,
            "bad_speculation": 0.1, "bad_speculation_error": 0.01, "frontend_bound": 0.2, "frontend_bound_error": -1,
            "backend_bound": 0.7 - ipc / 4, "backend_bound_error": 0.01}


class Measured:
    def forged(self, folder, ipc, program):
        forge(program, folder, ranks=4)
        for path in files_in(folder):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            rank = report["run"]["rank"]
            report["events"] = {"asked": 1, "why_not_hardware": "", "rows": [counted(rank, ipc)]}
            report["gpu_memory"] = {"asked": 1, "why_not": "", "places": [{"place": "gpu0", "peak": 10 ** 9 * (rank + 1), "most_held": 4 * 10 ** 9},
                                                                         {"place": "host", "peak": 7}]}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file, separators=(",", ":"))

    def test_events_and_memory_of_devices(self):
        before, now, path = (os.path.join(self.folder, name) for name in ("slower", "faster", "events.html"))
        self.forged(before, 2, self.forge)
        self.forged(now, 2.5, self.forge)
        pk_job(self.pk, "--html", path, "--against", before, now)
        job = json.loads(pk_job(self.pk, "--json", "--against", before, now).stdout)
        self.assertEqual(job["costs"]["device_memory"]["job"], 10 ** 10)
        self.assertEqual(job["costs"]["device_taken"]["by_rank"]["max"], 4 * 10 ** 9)
        self.assertAlmostEqual(job["costs"]["device_memory"]["by_rank"]["imbalance"], 0.6)
        page = self.open(path)
        self.sound(page)
        shown = page.ask(CELLS.format("#events"))
        self.assertEqual(shown[0][:3] + shown[0][7:], ["backward", "20.0\u202f%", "IPC", "2.80", "rank 3", "5.7\u202f%"])
        self.assertRegex(shown[0][3], r"\A2\.65 ±\u202f0\.75\u202f%\Z")
        self.assertEqual(shown[1][:4], ["", "", "Instructions", "2.50\u202fM exact"])
        self.assertEqual(shown[2][2:4], ["Retiring", "62.5\u202f% ±\u202f0.50\u202f%"])
        self.assertEqual(shown[4][3], "20.0\u202f%")
        rows = [cells for cells in page.ask(CELLS.format("#against .card:nth-of-type(2)"))]
        self.assertEqual([row[1] for row in rows], ["IPC", "Instructions", "Retiring", "Bad speculation", "Front-end bound", "Back-end bound"])
        self.assertEqual(rows[2][2:], ["50.0\u202f% ±\u202f0.50\u202f%", "62.5\u202f% ±\u202f0.50\u202f%", "+25.0\u202f%"])
        self.assertEqual([row[4] for row in rows[3:5]], ["within the errors"] * 2)
        self.assertEqual((rows[0][0], rows[0][4]), ("backward", "+23.3\u202f%"))
        costs = {cells[0]: cells for cells in page.ask(CELLS.format("#costs"))}
        self.assertEqual(costs["Device memory at most"][5:], ["4.00\u202fGB", "rank 3", "60.0\u202f%"])
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|\[object")
        page.close()


# ---- what the page of a job does where there is little room ----

# Long names, narrow screens.

FULL = "document.documentElement.scrollWidth"


class JobRoom:
    def long_names(self):
        folder = os.path.join(self.folder, "long")
        forge(self.forge, folder, ranks=4, culprits=1, slow=0.2, regions=2, calls=5)
        for path in files_in(folder):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for i, name in enumerate(("backward", "region 1", "node0", "train")):
                text = text.replace(f'"{name}"', f'"{"n" * 5000}{i}{"m" * 5000}"')
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return write_page(self.pk, folder + ".html", folder)

    def test_long_names_stay_in_the_page(self):
        path = self.long_names()
        for width in 390, 1280:
            with self.subTest(width=width):
                page = self.open(path, width=width, height=800)
                page.frames()
                self.sound(page)
                self.assertEqual(page.ask(FULL), width)
                page.close()

    def with_operations(self, ranks):
        """A communicator with a long name, and messages on it."""
        folder = os.path.join(self.folder, "operations")
        forge(self.forge, folder, ranks=ranks, report=1)
        for rank, path in enumerate(files_in(folder)):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            report["comm"] = scene.collectives(random.Random(rank))
            for row in report["comm"]["communicators"]:
                row["library"] = "MPI"
            report["comm"]["communicators"][0]["name"] = "MPI_COMM_WORLD messages"
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file)
        return write_page(self.pk, folder + ".html", folder), json.loads(pk_job(self.pk, "--json", folder).stdout)

    def test_operations_fit_the_screen(self):
        """A communicator's name stands above its operations and not in each, so the last columns are on the page."""
        path, job = self.with_operations(4)
        page = self.open(path, width=1280, height=800)
        page.frames(3)
        card = "#communication .card:nth-of-type(2)"
        wide, room, groups = page.ask(f"(() => {{ const area = document.querySelector('{card} .scroll'); return [area.scrollWidth, area.clientWidth,"
                                      f"[...area.querySelectorAll('tr.group')].map((row) => row.textContent)]; }})()")
        self.assertLessEqual(wide, room)
        named = [f"MPI {comm['name']}" for comm in job["communicators"]]
        self.assertEqual(groups, [named[i] for i in sorted({row["communicator"] for row in job["operations"]})])
        self.assertEqual(page.ask(UNTOLD), [])
        page.close()
        page = self.open(path, width=390, height=800, mobile=True)
        page.frames(3)
        self.assertEqual((page.ask(UNTOLD), page.ask(BROKEN), page.ask(FULL)), ([], [], 390))
        page.close()

    def test_figures_of_a_small_matrix(self):
        """Four ranks: each pair's bytes stand in its cell; 300 have no room for that."""
        for ranks in 4, 300:
            folder, page, job = self.talking(f"figures{ranks}", ranks, 2)
            page.close()
            page = self.open_watched(folder + ".html", width=1280, height=800)
            page.frames(3)
            shown = page.ask("written.filter((w) => w.canvas === document.querySelector('#matrix canvas')).map((w) => w.text)")
            sent = [f"{digits_of(size / 1000)}\u202fkB" for _, _, _, size, _ in job["messages"]["matrix"]]
            self.assertEqual({text for text in shown if text}, set(sent) if ranks == 4 else set())
            page.close()


# ---- the page of `pk job --html` in headless Chromium, of 4, 8 and 4,096 forged ranks ----

# Exit status 77: there is no browser here, or this pk was built without charts.

TOLD = "document.querySelector('#heat .told').textContent"

CHOSEN = "document.querySelector('#rank-body h3').textContent"

ROWS = "[...document.querySelectorAll('{} tbody tr:not(.group)')].map((row) => [...row.cells].map((cell) => cell.textContent))"


class JobPage(Measured, JobRoom, Pages):
    """Each job's page is made and opened at the first test that asks for it."""

    made, pk, forge = {}, PK, FORGE

    @classmethod
    def start(cls, browser):
        cls.browser = browser
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = cls.keep.name

    def job(self, ranks):
        if ranks not in self.made:
            folder = os.path.join(self.folder, str(ranks))
            slow = forge(FORGE, folder, ranks=ranks, culprits=1, slow=0.2, stage=2, per_host=4, regions=20, calls=5)
            path = write_page(PK, folder + ".html", folder)
            shown = self.open(path)
            shown.ask("document.documentElement.style.scrollBehavior = 'auto'")
            shown.frames()
            self.made[ranks] = slow[0], path, shown, json.loads(pk_job(PK, "--json", folder).stdout)
        return self.made[ranks]

    def show_rank(self, page, rank):
        page.ask(f"(() => {{ const f = document.getElementById('rank-number'); f.value = '{rank}'; f.dispatchEvent(new Event('change')); }})()")

    # ---- every figure ----

    def check_spreads(self, page, place, rows, member, before=1):
        page.ask(f"document.querySelectorAll('{place} button').forEach((b) => b.textContent.startsWith('Show all') && b.click())")
        shown = page.ask(ROWS.format(place))
        self.assertEqual(len(shown), len(rows))
        self.assertGreater(len(rows), 0)
        for cells, row in zip(shown, rows):
            spread, name = row[member], row.get("stage", row.get("operation", row["name"] if "name" in row else ""))
            self.assertIn(name, cells[0])
            self.assertEqual(cells[before], str(spread["ranks"]) if spread["ranks"] < 1000 else f"{spread['ranks']:,}".replace(",", "\u202f"))
            if spread["ranks"]:
                self.assertEqual(cells[before + 1:before + 6], [time_text(spread["min"]), time_text(spread["mean"]), time_text(spread["max"]),
                                                                f"rank {spread['max_rank']}", percent_text(spread["imbalance"])])

    def check_figures(self, ranks):
        _, _, page, job = self.job(ranks)
        self.sound(page)
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|null|\[object")
        frontier, efficiency = job["frontier"], job["efficiency"]
        self.assertEqual(page.ask("[...document.querySelectorAll('.tile b')].map((b) => b.textContent)"),
                         [time_text(frontier["exposed"] / frontier["steps"]), "50", percent_text(efficiency["parallel"]), percent_text(efficiency["load_balance"]), "1"])
        self.assertEqual(page.ask("[...document.querySelectorAll('.verdict .name')].map((n) => n.textContent)"), [v["name"] for v in job["verdicts"]])
        said = page.ask("document.querySelector('#verdicts').textContent").replace("\u202fµs", " us")
        for verdict in job["verdicts"]:
            self.assertIn(verdict["text"], said)
        for cells, row in zip(page.ask(ROWS.format("#frontier")), frontier["increments"], strict=True):
            self.assertEqual(cells[:2] + cells[3:4], [row["stage"], time_text(row["time"] / frontier["steps"]), percent_text(row["time"] / frontier["exposed"])])
            if row["time"]:
                cause = row.get("cause")
                self.assertEqual(cells[4:], [f"for rank {cause['rank']}", f"in {cause['stage']}"] if cause else
                                 [f"rank {row['rank']}", percent_text(row["of_rank"] / row["time"])])
        self.assertEqual(page.ask("[...document.querySelectorAll('#efficiency b')].map((b) => b.textContent)"),
                         [percent_text(efficiency[name]) for name in ("parallel", "load_balance", "communication", "serialisation", "transfer")])
        self.check_spreads(page, "#imbalance .card:nth-of-type(1)", job["stages"], "per_step")
        self.check_spreads(page, "#imbalance .card:nth-of-type(2)", job["regions"], "self")

    def check_late(self, ranks):
        slow, _, page, job = self.job(ranks)
        order = sorted(job["ranks"], key=lambda rank: (-rank["late"], rank["rank"]))
        verdict = next(v for v in job["verdicts"] if v["name"] == "late-rank")
        shown = page.ask(ROWS.format("#late"))
        self.assertEqual([cells[0] for cells in shown], [f"rank {rank['rank']}" for rank in order[:len(shown)]])
        self.assertEqual([cells[1] for cells in shown], [signed_text(rank["late"]) for rank in order[:len(shown)]])
        self.assertEqual(shown[0][3:], [f"{percent_text(verdict['late_low'])} to {percent_text(verdict['late_high'])}", time_text(verdict["cost"]), "backward",
                                        f"node{slow // 4}"])
        self.assertEqual((verdict["rank"], page.ask("document.querySelectorAll('#late .whisker .range').length")), (slow, 1))

    def check_rank(self, ranks, rank):
        _, _, page, job = self.job(ranks)
        self.show_rank(page, rank)
        self.assertEqual(page.ask(CHOSEN), f"Rank {rank}")
        row = next(r for r in job["ranks"] if r["rank"] == rank)
        self.assertEqual(page.ask("document.querySelector('#rank-body a').textContent"), row["file"])
        self.assertEqual(page.ask("decodeURIComponent(new URL(document.querySelector('#rank-body a').href).pathname)"), row["file"])
        own, shown = Rank(row["file"]), page.ask(ROWS.format("#rank-body"))
        stages = {stage["stage"]: stage["per_step"] for stage in job["stages"]}
        for k, stage in enumerate(own.stages):
            spread = stages[stage["name"]]
            self.assertEqual(shown[k][:3] + [shown[k][4].strip()], [stage["name"], time_text(round(own.stage(k))), time_text(spread["mean"]), time_text(spread["max"])])
        regions = {region["name"]: region["self"] for region in job["regions"]}
        selves = {region["name"]: region["self"] for region in own.report["regions"]}
        for cells in shown[len(own.stages):]:
            self.assertEqual(cells[1:3], [time_text(selves[cells[0]]), time_text(regions[cells[0]]["mean"])])
        return len(shown) - len(own.stages)

    def test_figures_of_4(self):
        self.check_figures(4)
        self.check_late(4)
        self.assertEqual([self.check_rank(4, rank) for rank in range(4)], [20] * 4)

    def test_figures_of_8(self):
        self.check_figures(8)
        self.check_late(8)
        self.assertEqual(self.check_rank(8, 7), 20)

    def test_figures_of_4096(self):
        self.check_figures(4096)
        self.check_late(4096)
        slow = self.job(4096)[0]
        self.assertEqual(self.check_rank(4096, slow), 9)
        page = self.job(4096)[2]
        self.assertIn("The 9 regions with the most self time of the job; 11 are left out.", page.ask("document.querySelector('#rank-body').textContent"))
        self.assertIn("A cell is of up to 11 ranks, and has the largest of their figures.", page.ask("document.querySelector('#heat').textContent"))

    # ---- keys, mouse ----

    def cell_words(self, path, metric, row, column):
        heat = embedded(path, "drawn")["heat"]
        cell = cells_of(heat[metric])[row * len(heat["first_steps"]) + column]
        first, last, _ = heat["ranks"][row]
        who = f"Rank {first}, " if first == last else f"Ranks {first} to {last}, "
        return f"{who}step {column}: {'at most ' if first != last else ''}{cell / 1000:.3f} × the median"

    def check_heat(self, ranks):
        _, path, page, _ = self.job(ranks)
        page.ask("document.querySelector('#heat canvas').focus()")
        page.key("Escape")
        self.assertIn("use the arrow keys", page.ask(TOLD))
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):  # the first chooses the first cell
            page.key(key)
        self.assertEqual(page.ask(TOLD), self.cell_words(path, "own", 1, 1))
        page.ask("(() => { const s = document.getElementById('heat-shows'); s.value = 'step'; s.dispatchEvent(new Event('change')); })()")
        self.assertEqual(page.ask(TOLD), self.cell_words(path, "step", 1, 1))
        page.key("End")
        self.assertEqual(page.ask(TOLD), self.cell_words(path, "step", 1, 49))
        page.ask("(() => { const s = document.getElementById('heat-shows'); s.value = 'own'; s.dispatchEvent(new Event('change')); })()")
        latest = embedded(path, "drawn")["heat"]["ranks"][1][2]
        page.key("Enter")
        self.assertEqual(page.ask(CHOSEN), f"Rank {latest}")
        self.assertEqual(page.ask("document.activeElement.id"), "rank-number")
        x, y = page.ask("(() => { const c = document.querySelector('#heat canvas'); c.scrollIntoView({block: 'center', behavior: 'instant'});"
                        "const b = c.getBoundingClientRect(); return [b.x + b.width * 10.5 / 50, b.y + b.height - 1]; })()")
        page.mouse("Moved", x, y)
        last = len(embedded(path, "drawn")["heat"]["ranks"]) - 1
        self.assertEqual(page.ask(TOLD), self.cell_words(path, "own", last, 10))

    def test_the_heat_map_answers(self):
        for ranks in 4, 8, 4096:
            with self.subTest(ranks=ranks):
                self.check_heat(ranks)

    def test_the_late_rank_is_seen(self):
        """Its row is of another colour than the page."""
        for ranks in 8, 4096:
            slow, path, page, _ = self.job(ranks)
            heat = embedded(path, "drawn")["heat"]
            row = next(i for i, (first, last, _) in enumerate(heat["ranks"]) if first <= slow <= last)
            other = (row + 2) % len(heat["ranks"])
            warm = page.ask(f"""(() => {{ const c = document.querySelector('#heat canvas'), k = c.getContext('2d');
                const of = (row) => {{ const d = k.getImageData(c.width / 4, Math.floor((row + 0.5) * c.height / {len(heat['ranks'])}), c.width / 2, 1).data;
                    let sum = 0; for (let i = 0; i < d.length; i += 4) sum += d[i] - d[i + 2]; return sum / d.length * 4; }};
                return [of({row}), of({other})]; }})()""")
            self.assertGreater(warm[0], warm[1] + 40, ranks)

    def test_the_chart_answers(self):
        for ranks in 4, 4096:
            slow, _, page, job = self.job(ranks)
            page.ask("plotOf('chart-ranks').focus()")
            page.key("Home")
            self.assertIn(f"Rank {slow}\n", page.ask("tipOf('chart-ranks')"))
            page.key("End")
            order = sorted(job["ranks"], key=lambda rank: (-rank["late"], rank["rank"]))
            self.assertIn(f"Rank {order[-1]['rank']}\n", page.ask("tipOf('chart-ranks')"))
            page.key("Enter")
            self.assertEqual(page.ask(CHOSEN), f"Rank {order[-1]['rank']}")

    def test_by_keyboard_alone(self):
        page = self.open(self.job(8)[1])
        seen = []
        for _ in range(60):
            page.key("Tab")
            seen.append(page.ask("(() => { const a = document.activeElement, s = getComputedStyle(a);"
                                 "return [a.id || a.className || a.tagName, s.outlineStyle]; })()"))
        for name in "heat-shows", "plot", "name", "rank-number":
            self.assertIn(name, [what for what, _ in seen])
        self.assertTrue(all(outline != "none" for what, outline in seen if what != "BODY"), seen)
        page.close()

    # ---- for everybody ----

    def test_on_a_phone(self):
        for ranks in 4, 4096:
            page = self.open(self.job(ranks)[1], width=390, height=800, mobile=True, scale=2)
            page.frames()
            self.assertEqual(page.ask("document.documentElement.scrollWidth"), 390)
            self.assertEqual(page.ask("[...document.querySelectorAll('section > *, figure, .tile')].filter((n) =>"
                                      "n.getBoundingClientRect().right > 391).map((n) => n.outerHTML.slice(0, 80))"), [])
            self.assertGreater(page.ask("document.querySelector('#heat canvas').clientWidth"), 280)
            self.sound(page)
            page.close()

    def test_dark(self):
        page = self.open(self.job(8)[1], dark=True)
        page.frames()
        self.sound(page)
        self.assertLess(page.ask("luminance(getComputedStyle(document.body).backgroundColor)"), 0.02)
        hue = "document.querySelector('#heat canvas').toDataURL()"
        dark = page.ask(hue)
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        page.frames()
        self.assertNotEqual(page.ask(hue), dark)
        page.close()

    def test_names_are_text(self):
        folder = os.path.join(self.folder, "<b>hostile")
        forge(FORGE, folder, ranks=8, culprits=1, slow=0.2, regions=2, calls=5)
        for path in files_in(folder):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for name in "backward", "region 1", "node0", "train":
                text = text.replace(f'"{name}"', json.dumps(scene.HOSTILE))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        page = self.open(write_page(PK, folder + ".html", folder))
        self.sound(page)
        self.assertEqual(page.ask("document.querySelectorAll('main img, main script, main b b').length"), 0)
        self.assertIn("</script>", page.ask("document.querySelector('#frontier').textContent"))
        page.close()

    def test_communication(self):
        folder = os.path.join(self.folder, "comm")
        forge(FORGE, folder, ranks=4, report=1)
        for rank, path in enumerate(files_in(folder)):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            report["comm"] = scene.collectives(random.Random(rank))
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file)
        page, job = self.open(write_page(PK, folder + ".html", folder)), json.loads(pk_job(PK, "--json", folder).stdout)
        self.sound(page)
        self.check_spreads(page, "#communication .card:nth-of-type(1)", job["communicators"], "waited", 3)
        by_communicator = sorted(job["operations"], key=lambda row: row["communicator"])
        self.check_spreads(page, "#communication .card:nth-of-type(2)", by_communicator, "time", 3)
        shown = page.ask(ROWS.format("#communication .card:nth-of-type(3)"))
        self.assertEqual([(cells[0], cells[1], cells[4], cells[5]) for cells in shown],
                         [(row["operation"], str(row["sequence"]), time_text(row["spread"]), f"rank {row['last_rank']}") for row in job["arrivals"]])
        self.assertGreater(len(shown), 0)
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|\[object")
        page.close()

    def talking(self, name, ranks, hosts):
        """Each rank sends to the next two; every host has a counter of energy that all of its ranks read."""
        folder = os.path.join(self.folder, name)
        forge(FORGE, folder, ranks=ranks, per_host=ranks // hosts)
        for path in files_in(folder):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            rank = report["run"]["rank"]
            report["comm"]["partners"] = [[(rank + by) % ranks, 10 * by, 1000 * by + rank, 7, 0, 0, 0] for by in (1, 2)]
            report["steps"] = {"utilisation": {"steps": 50, "time": 10 ** 9, "model": 1e9 * (1 + rank % 2), "hardware": 2e9, "peak": 4e9}}
            report["io"] = {"asked": 1, "why_not": "", "read_chars": 100 + rank}
            report["energy"] = {"asked": 1, "why_not": "", "rows": [
                {"counter": "package-0", "step_kind": "(run)", "joules": 500 + rank % 2}, {"counter": "gpu0", "step_kind": "(run)", "joules": 10},
                {"counter": "package-0 core", "step_kind": "(run)", "joules": 99}, {"counter": "gpu0", "step_kind": "", "joules": 9}]}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file, separators=(",", ":"))
        page = self.open(write_page(PK, folder + ".html", folder), width=390, height=780, mobile=True, scale=2)
        return folder, page, json.loads(pk_job(PK, "--json", folder).stdout)

    def check_matrix(self, name, ranks, per_block):
        folder, page, job = self.talking(name, ranks, 2)
        self.sound(page)
        self.assertEqual(page.ask("document.documentElement.scrollWidth"), 390)
        matrix = embedded(folder + ".html", "drawn")["matrix"]
        self.assertEqual(matrix["ranks_per_block"], per_block)
        self.assertEqual([row[0] for row in matrix["ranks"]], list(range(0, ranks, per_block)))
        sums = {}
        for sender, receiver, messages, size, _ in job["messages"]["matrix"]:
            cell = sums.setdefault((sender // per_block, receiver // per_block), [0, 0])
            cell[0], cell[1] = cell[0] + messages, cell[1] + size
        self.assertEqual({(row, column): both for row, column, *both in matrix["cells"]}, sums)
        told = "document.querySelector('#matrix .told').textContent"
        page.ask("document.querySelector('#matrix canvas').focus()")
        page.key("ArrowRight")
        page.key("ArrowRight")
        self.assertIn(f"{sums[0, 1][0]} messages", page.ask(told))
        page.key("End")
        self.assertTrue(page.ask(told).startswith("From rank"))
        ink = ("(() => { const c = document.querySelector('#matrix canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
               "const s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]); return s.size; })()")
        self.assertGreater(page.ask(ink), 2)
        self.assertIn("A cell for each pair" if per_block == 1 else f"A cell is of {per_block} ranks", page.ask("document.querySelector('#matrix .note').textContent"))
        return page, job

    def test_who_talks_to_whom(self):
        for ranks, per_block in (4, 1), (300, 3):
            with self.subTest(ranks=ranks):
                self.check_matrix(f"talk{ranks}", ranks, per_block)[0].close()

    def test_what_it_cost(self):
        _, page, job = self.talking("costs", 4, 2)
        costs = job["costs"]
        self.assertAlmostEqual(costs["mfu"]["job"], 6e9 / 16e9)
        self.assertEqual((costs["mfu"]["by_rank"]["max"], costs["mfu"]["by_rank"]["max_rank"]), (0.5, 1))
        self.assertEqual((costs["read"]["job"], costs["read"]["by_rank"]["max_rank"]), (100 + 101 + 102 + 103, 3))
        self.assertEqual(costs["joules"]["job"], 2 * 501 + 4 * 10)  # a host's processors once
        self.assertEqual(costs["joules"]["by_rank"]["max"], 511)
        self.assertNotIn("resident", costs)
        self.assertEqual([rank["read"] for rank in job["ranks"]], [100, 101, 102, 103])
        shown = {cells[0]: cells[1] for cells in page.ask(ROWS.format("#costs"))}
        self.assertEqual((shown["MFU"], shown["Energy"]), (percent_text(0.375), "1.04\u202fkJ"))
        self.assertNotIn("Memory at most", shown)
        page.close()

    def test_before_and_after(self):
        before, now, path = (os.path.join(self.folder, name) for name in ("before", "now", "after.html"))
        forge(FORGE, before, ranks=8)
        slow = forge(FORGE, now, ranks=8, seed=1, culprits=1, slow=0.2, stage=2)
        self.assertEqual((done := pk_job(PK, "--html", path, "--against", before, now)).returncode, 1, done)
        against = json.loads(pk_job(PK, "--json", "--against", before, now).stdout)["against"]
        changed = [row for row in against["rows"] if row["of"] != "rank" or row["change"] in ("slower", "faster")]
        page = self.open(path)
        self.sound(page)
        shown = page.ask(ROWS.format("#against"))
        self.assertEqual([cells[2:4] + cells[6:] for cells in shown], [[time_text(row["before"]), time_text(row["now"]), row["change"]] for row in changed])
        self.assertEqual([shown[0][0], shown[-1][0], shown[-1][6]], ["The job\u2019s step", f"rank {slow[0]}", "slower"])
        self.assertIn("backward", [row[0] for row in shown if row[6] == "slower"])
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|null|\[object")
        page.close()

    def test_scaling(self):
        few, many, path = (os.path.join(self.folder, name) for name in ("few", "many", "scaling.html"))
        forge(FORGE, few, ranks=4)
        forge(FORGE, many, ranks=8)
        pk_job(PK, "--html", path, "--against", few, many)
        scaling = json.loads(pk_job(PK, "--json", "--against", few, many).stdout)["against"]["scaling"]
        page = self.open(path)
        self.sound(page)
        said = page.ask("document.querySelector('#against').textContent")
        self.assertIn("8 instead of 4", said)
        self.assertIn(("Strong" if scaling["sort"] == "strong" else "Weak") + " scaling efficiency" + percent_text(scaling["efficiency"]), said)
        page.close()

    def test_ranks_that_are_not_there(self):
        folder = os.path.join(self.folder, "missing")
        forge(FORGE, folder, ranks=8)
        os.remove(files_in(folder)[3])
        os.mkdir(os.path.join(self.folder, "pages"))
        write_page(PK, "pages/missing.html", "missing", cwd=self.folder)
        page = self.open(os.path.join(self.folder, "pages", "missing.html"))
        self.sound(page)
        self.show_rank(page, 3)
        self.assertEqual(page.ask("document.querySelector('#rank-body').textContent"), "There is no file of rank 3.")
        self.show_rank(page, 4)
        self.assertTrue(os.path.exists(page.ask("decodeURIComponent(new URL(document.querySelector('#rank-body a').href).pathname)")))
        page.close()

    def test_one_rank_and_no_steps(self):
        for name, numbers in (("one", {"ranks": 1}), ("none", {"ranks": 4, "steps": 0, "regions": 2, "calls": 5})):
            folder = os.path.join(self.folder, name)
            forge(FORGE, folder, **numbers)
            page = self.open(write_page(PK, folder + ".html", folder))
            self.sound(page)
            self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|null|\[object")
            page.close()

    def test_without_steps_it_says_what_is_known(self):
        """Nobody is judged; MPI's share, waits and who talks to whom are there. Rank 3 comes 30 ms late to ten barriers."""
        folder = os.path.join(self.folder, "mpi")
        forge(FORGE, folder, ranks=4, steps=0, regions=2, calls=5)
        for path in files_in(folder):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            rank = report["run"]["rank"]
            report["run"]["wall"] = 10 ** 9
            report["regions"] = [{**report["regions"][0], "name": "MPI_Barrier", "kind": "comm", "self": 400_000_000 - 100_000_000 * rank}]
            barriers = [[n + 1, 50_000_000 * n + 10_000_000 * rank, 30_000_000 - 10_000_000 * rank + 1000, 30_000_000 - 10_000_000 * rank + 1000,
                         0, 11, 4, -1, *([] if rank == 3 else [1])] for n in range(10)]  # rank 3's file is older
            report["comm"]["partners"] = [[(rank + 1) % 4, 10, 1000, 7, 0, 0, 0]]
            report["comm"]["sequences"] = {"operations": 10, "one_in": 1, "origin": 0, "clock": "c", "regions": [{"name": "halo"}], "rows": barriers}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file, separators=(",", ":"))
        page = self.open(write_page(PK, folder + ".html", folder))
        self.sound(page)
        self.assertEqual(page.ask("[...document.querySelectorAll('.tile')].map((tile) => tile.textContent)"),
                         ["not judgedlate ranks", f"{percent_text(0.25)}of the time in MPI", f"{time_text(600e6)}waited for others, all ranks"])
        self.assertIn("Nobody can be called late", page.ask("document.querySelector('#verdicts').textContent"))
        self.assertEqual([row[0] for row in page.ask(ROWS.format("#mpi"))], ["MPI_Barrier"])
        rows = page.ask(ROWS.format("#waits"))
        self.assertEqual([(row[0].split(" a barrier")[0], *row[1:]) for row in rows],
                         [("Wait at barrier", time_text(600e6), "rank 0"), ("For a rank, by all others", time_text(600e6), "rank 3"),
                          ("Wait at barrier", time_text(600e6), "halo: barrier", "rank 0", "(outside regions): barrier", "rank 3")])
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|null|\[object")
        page.close()


def main():
    if without_charts(PK):
        print("this pk was built without uPlot")
        return 77
    try:
        with chromium.Browser() as browser:
            JobPage.start(browser)
            program = unittest.main(argv=[sys.argv[0], "JobPage"], exit=False)
            Pages.stop.__func__(JobPage)
            return 0 if program.result.wasSuccessful() else 1
    except chromium.Absent as reason:
        print(reason)
        return 77


def data():
    if without_charts(PK):
        print("this pk was built without uPlot")
        return 77
    return 0 if unittest.main(argv=[sys.argv[0], "JobData"], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit({"page": main, "data": data}[sys.argv[5]]())

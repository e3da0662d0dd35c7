"""job.py PK GOLDEN CHROMIUM_FOLDER JOB_FILES - the page of `pk job --html` in headless Chromium, of 4, 8 and 4,096 forged ranks. Exit status 77: there is
no browser here, or this pk was built without charts."""

import json
import os
import random
import sys
import tempfile
import unittest

from opened import Pages, chromium, scene
import job_kit as kit
from job_measured import Measured
from job_room import JobRoom

PK, FORGE = map(os.path.abspath, (sys.argv[1], sys.argv[4]))
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
            slow = kit.forge(FORGE, folder, ranks=ranks, culprits=1, slow=0.2, stage=2, per_host=4, regions=20, calls=5)
            path = kit.page(PK, folder + ".html", folder)
            shown = self.open(path)
            shown.ask("document.documentElement.style.scrollBehavior = 'auto'")
            shown.frames()
            self.made[ranks] = slow[0], path, shown, json.loads(kit.pk_job(PK, "--json", folder).stdout)
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
                self.assertEqual(cells[before + 1:before + 6], [kit.time(spread["min"]), kit.time(spread["mean"]), kit.time(spread["max"]),
                                                                f"rank {spread['max_rank']}", kit.percent(spread["imbalance"])])

    def check_figures(self, ranks):
        _, _, page, job = self.job(ranks)
        self.sound(page)
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|null|\[object")
        frontier, efficiency = job["frontier"], job["efficiency"]
        self.assertEqual(page.ask("[...document.querySelectorAll('.tile b')].map((b) => b.textContent)"),
                         [kit.time(frontier["exposed"] / frontier["steps"]), "50", kit.percent(efficiency["parallel"]), kit.percent(efficiency["load_balance"]), "1"])
        self.assertEqual(page.ask("[...document.querySelectorAll('.verdict .name')].map((n) => n.textContent)"), [v["name"] for v in job["verdicts"]])
        said = page.ask("document.querySelector('#verdicts').textContent").replace("\u202fµs", " us")
        for verdict in job["verdicts"]:
            self.assertIn(verdict["text"], said)
        for cells, row in zip(page.ask(ROWS.format("#frontier")), frontier["increments"], strict=True):
            self.assertEqual(cells[:2] + cells[3:4], [row["stage"], kit.time(row["time"] / frontier["steps"]), kit.percent(row["time"] / frontier["exposed"])])
            if row["time"]:
                self.assertEqual(cells[4:], [f"rank {row['rank']}", kit.percent(row["of_rank"] / row["time"])])
        self.assertEqual(page.ask("[...document.querySelectorAll('#efficiency b')].map((b) => b.textContent)"),
                         [kit.percent(efficiency[name]) for name in ("parallel", "load_balance", "communication", "serialisation", "transfer")])
        self.check_spreads(page, "#imbalance .card:nth-of-type(1)", job["stages"], "per_step")
        self.check_spreads(page, "#imbalance .card:nth-of-type(2)", job["regions"], "self")

    def check_late(self, ranks):
        slow, _, page, job = self.job(ranks)
        order = sorted(job["ranks"], key=lambda rank: (-rank["late"], rank["rank"]))
        verdict = next(v for v in job["verdicts"] if v["name"] == "late-rank")
        shown = page.ask(ROWS.format("#late"))
        self.assertEqual([cells[0] for cells in shown], [f"rank {rank['rank']}" for rank in order[:len(shown)]])
        self.assertEqual([cells[1] for cells in shown], [kit.signed(rank["late"]) for rank in order[:len(shown)]])
        self.assertEqual(shown[0][3:], [f"{kit.percent(verdict['late_low'])} to {kit.percent(verdict['late_high'])}", kit.time(verdict["cost"]), "backward",
                                        f"node{slow // 4}"])
        self.assertEqual((verdict["rank"], page.ask("document.querySelectorAll('#late .whisker .range').length")), (slow, 1))

    def check_rank(self, ranks, rank):
        _, _, page, job = self.job(ranks)
        self.show_rank(page, rank)
        self.assertEqual(page.ask(CHOSEN), f"Rank {rank}")
        row = next(r for r in job["ranks"] if r["rank"] == rank)
        self.assertEqual(page.ask("document.querySelector('#rank-body a').textContent"), row["file"])
        self.assertEqual(page.ask("decodeURIComponent(new URL(document.querySelector('#rank-body a').href).pathname)"), row["file"])
        own, shown = kit.Rank(row["file"]), page.ask(ROWS.format("#rank-body"))
        stages = {stage["stage"]: stage["per_step"] for stage in job["stages"]}
        for k, stage in enumerate(own.stages):
            spread = stages[stage["name"]]
            self.assertEqual(shown[k][:3] + [shown[k][4].strip()], [stage["name"], kit.time(round(own.stage(k))), kit.time(spread["mean"]), kit.time(spread["max"])])
        regions = {region["name"]: region["self"] for region in job["regions"]}
        selves = {region["name"]: region["self"] for region in own.report["regions"]}
        for cells in shown[len(own.stages):]:
            self.assertEqual(cells[1:3], [kit.time(selves[cells[0]]), kit.time(regions[cells[0]]["mean"])])
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
        heat = kit.embedded(path, "drawn")["heat"]
        cell = kit.cells(heat[metric])[row * len(heat["first_steps"]) + column]
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
        latest = kit.embedded(path, "drawn")["heat"]["ranks"][1][2]
        page.key("Enter")
        self.assertEqual(page.ask(CHOSEN), f"Rank {latest}")
        self.assertEqual(page.ask("document.activeElement.id"), "rank-number")
        x, y = page.ask("(() => { const c = document.querySelector('#heat canvas'); c.scrollIntoView({block: 'center', behavior: 'instant'});"
                        "const b = c.getBoundingClientRect(); return [b.x + b.width * 10.5 / 50, b.y + b.height - 1]; })()")
        page.mouse("Moved", x, y)
        last = len(kit.embedded(path, "drawn")["heat"]["ranks"]) - 1
        self.assertEqual(page.ask(TOLD), self.cell_words(path, "own", last, 10))

    def test_the_heat_map_answers(self):
        for ranks in 4, 8, 4096:
            with self.subTest(ranks=ranks):
                self.check_heat(ranks)

    def test_the_late_rank_is_seen(self):
        """Its row is of another colour than the page."""
        for ranks in 8, 4096:
            slow, path, page, _ = self.job(ranks)
            heat = kit.embedded(path, "drawn")["heat"]
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
        kit.forge(FORGE, folder, ranks=8, culprits=1, slow=0.2, regions=2, calls=5)
        for path in kit.files(folder):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for name in "backward", "region 1", "node0", "train":
                text = text.replace(f'"{name}"', json.dumps(scene.HOSTILE))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        page = self.open(kit.page(PK, folder + ".html", folder))
        self.sound(page)
        self.assertEqual(page.ask("document.querySelectorAll('main img, main script, main b b').length"), 0)
        self.assertIn("</script>", page.ask("document.querySelector('#frontier').textContent"))
        page.close()

    def test_communication(self):
        folder = os.path.join(self.folder, "comm")
        kit.forge(FORGE, folder, ranks=4, report=1)
        for rank, path in enumerate(kit.files(folder)):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            report["comm"] = scene.collectives(random.Random(rank))
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file)
        page, job = self.open(kit.page(PK, folder + ".html", folder)), json.loads(kit.pk_job(PK, "--json", folder).stdout)
        self.sound(page)
        self.check_spreads(page, "#communication .card:nth-of-type(1)", job["communicators"], "waited", 3)
        by_communicator = sorted(job["operations"], key=lambda row: row["communicator"])
        self.check_spreads(page, "#communication .card:nth-of-type(2)", by_communicator, "time", 3)
        shown = page.ask(ROWS.format("#communication .card:nth-of-type(3)"))
        self.assertEqual([(cells[0], cells[1], cells[4], cells[5]) for cells in shown],
                         [(row["operation"], str(row["sequence"]), kit.time(row["spread"]), f"rank {row['last_rank']}") for row in job["arrivals"]])
        self.assertGreater(len(shown), 0)
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|\[object")
        page.close()

    def talking(self, name, ranks, hosts):
        """Each rank sends to the next two; every host has a counter of energy that all of its ranks read."""
        folder = os.path.join(self.folder, name)
        kit.forge(FORGE, folder, ranks=ranks, per_host=ranks // hosts)
        for path in kit.files(folder):
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
        page = self.open(kit.page(PK, folder + ".html", folder), width=390, height=780, mobile=True, scale=2)
        return folder, page, json.loads(kit.pk_job(PK, "--json", folder).stdout)

    def check_matrix(self, name, ranks, per_block):
        folder, page, job = self.talking(name, ranks, 2)
        self.sound(page)
        self.assertEqual(page.ask("document.documentElement.scrollWidth"), 390)
        matrix = kit.embedded(folder + ".html", "drawn")["matrix"]
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
        self.assertEqual((shown["MFU"], shown["Energy"]), (kit.percent(0.375), "1.04\u202fkJ"))
        self.assertNotIn("Memory at most", shown)
        page.close()

    def test_before_and_after(self):
        before, now, path = (os.path.join(self.folder, name) for name in ("before", "now", "after.html"))
        kit.forge(FORGE, before, ranks=8)
        slow = kit.forge(FORGE, now, ranks=8, seed=1, culprits=1, slow=0.2, stage=2)
        self.assertEqual((done := kit.pk_job(PK, "--html", path, "--against", before, now)).returncode, 1, done)
        against = json.loads(kit.pk_job(PK, "--json", "--against", before, now).stdout)["against"]
        changed = [row for row in against["rows"] if row["of"] != "rank" or row["change"] in ("slower", "faster")]
        page = self.open(path)
        self.sound(page)
        shown = page.ask(ROWS.format("#against"))
        self.assertEqual([cells[2:4] + cells[6:] for cells in shown], [[kit.time(row["before"]), kit.time(row["now"]), row["change"]] for row in changed])
        self.assertEqual([shown[0][0], shown[-1][0], shown[-1][6]], ["The job\u2019s step", f"rank {slow[0]}", "slower"])
        self.assertIn("backward", [row[0] for row in shown if row[6] == "slower"])
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|null|\[object")
        page.close()

    def test_scaling(self):
        few, many, path = (os.path.join(self.folder, name) for name in ("few", "many", "scaling.html"))
        kit.forge(FORGE, few, ranks=4)
        kit.forge(FORGE, many, ranks=8)
        kit.pk_job(PK, "--html", path, "--against", few, many)
        scaling = json.loads(kit.pk_job(PK, "--json", "--against", few, many).stdout)["against"]["scaling"]
        page = self.open(path)
        self.sound(page)
        said = page.ask("document.querySelector('#against').textContent")
        self.assertIn("8 instead of 4", said)
        self.assertIn(("Strong" if scaling["sort"] == "strong" else "Weak") + " scaling efficiency" + kit.percent(scaling["efficiency"]), said)
        page.close()

    def test_ranks_that_are_not_there(self):
        folder = os.path.join(self.folder, "missing")
        kit.forge(FORGE, folder, ranks=8)
        os.remove(kit.files(folder)[3])
        os.mkdir(os.path.join(self.folder, "pages"))
        kit.page(PK, "pages/missing.html", "missing", cwd=self.folder)
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
            kit.forge(FORGE, folder, **numbers)
            page = self.open(kit.page(PK, folder + ".html", folder))
            self.sound(page)
            self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|null|\[object")
            page.close()

    def test_without_steps_it_says_what_is_known(self):
        """Nobody is judged; MPI's share, waits and who talks to whom are there. Rank 3 comes 30 ms late to ten barriers."""
        folder = os.path.join(self.folder, "mpi")
        kit.forge(FORGE, folder, ranks=4, steps=0, regions=2, calls=5)
        for path in kit.files(folder):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            rank = report["run"]["rank"]
            report["run"]["wall"] = 10 ** 9
            report["regions"] = [{**report["regions"][0], "name": "MPI_Barrier", "kind": "comm", "self": 400_000_000 - 100_000_000 * rank}]
            barriers = [[n + 1, 50_000_000 * n + 10_000_000 * rank, 30_000_000 - 10_000_000 * rank + 1000, 30_000_000 - 10_000_000 * rank + 1000,
                         0, 11, 4, -1] for n in range(10)]
            report["comm"]["partners"] = [[(rank + 1) % 4, 10, 1000, 7, 0, 0, 0]]
            report["comm"]["sequences"] = {"operations": 10, "one_in": 1, "origin": 0, "clock": "c", "rows": barriers}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file, separators=(",", ":"))
        page = self.open(kit.page(PK, folder + ".html", folder))
        self.sound(page)
        self.assertEqual(page.ask("[...document.querySelectorAll('.tile')].map((tile) => tile.textContent)"),
                         ["not judgedlate ranks", f"{kit.percent(0.25)}of the time in MPI", f"{kit.time(600e6)}waited for others, all ranks"])
        self.assertIn("Nobody can be called late", page.ask("document.querySelector('#verdicts').textContent"))
        self.assertEqual([row[0] for row in page.ask(ROWS.format("#mpi"))], ["MPI_Barrier"])
        rows = page.ask(ROWS.format("#waits"))
        self.assertEqual([(row[0].split(" a barrier")[0], *row[1:]) for row in rows],
                         [("Wait at barrier", kit.time(600e6), "rank 0"), ("For a rank, by all others", kit.time(600e6), "rank 3")])
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|null|\[object")
        page.close()


def main():
    if kit.without_charts(PK):
        print("this pk was built without uPlot")
        return 77
    try:
        with chromium.Browser() as browser:
            JobPage.start(browser)
            program = unittest.main(argv=sys.argv[:1], exit=False)
            Pages.stop.__func__(JobPage)
            return 0 if program.result.wasSuccessful() else 1
    except chromium.Absent as reason:
        print(reason)
        return 77


if __name__ == "__main__":
    sys.exit(main())

"""job_data.py PK JOB_FILES - what is in the page of `pk job --html`: the job as in --json, the heat map as the ranks' files have it, nothing beyond its
bounds. Exit status 77: this pk was built without charts."""

import json
import os
import sys
import tempfile
import unittest

import job_kit as kit

PK, FORGE = map(os.path.abspath, sys.argv[1:3])


class JobData(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def forged(self, **numbers):
        slow = kit.forge(FORGE, self.path("job"), **numbers)
        page = kit.page(PK, self.path("page.html"), self.path("job"))
        wanted = json.loads(kit.pk_job(PK, "--json", self.path("job")).stdout)
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
        ranks = sorted((kit.Rank(path) for path in kit.files(self.path("job"))), key=lambda rank: rank.rank)
        self.assertTrue(heat["by_work"])
        self.assertEqual((heat["ranks_per_row"], heat["blocks_per_column"]), (per_row, 1))
        self.assertEqual(heat["first_steps"], [block[0] for block in ranks[0].blocks])
        self.assertEqual([row[0] for row in heat["ranks"]], list(range(0, len(ranks), per_row)))
        for name, figure in ("step", kit.Rank.step), ("own", kit.Rank.own):
            shown, wanted = kit.cells(heat[name]), kit.heat_of(ranks, figure, per_row)
            self.assertEqual(len(shown), len(wanted))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(shown, wanted)), 1, name)
        for k, stage in enumerate(ranks[0].stages):
            self.assertGreater(ranks[0].stage(k), 0, stage)

    def test_the_data_is_the_job(self):
        for ranks in 4, 8:
            with self.subTest(ranks=ranks):
                self.setUp()
                _, page, wanted = self.forged(ranks=ranks, culprits=1, slow=0.1, per_host=4, regions=5, calls=50)
                self.assertEqual(kit.embedded(page, "job"), wanted)
                drawn = kit.embedded(page, "drawn")
                self.check_ranks(drawn, wanted)
                self.check_heat(drawn["heat"], 1)

    def test_4096_ranks(self):
        slow, page, wanted = self.forged(ranks=4096, culprits=2, slow=0.2, per_host=8, regions=12, calls=5)
        self.assertLess(os.path.getsize(page), 2_200_000)
        self.assertEqual(kit.embedded(page, "job"), wanted)
        drawn = kit.embedded(page, "drawn")
        self.check_ranks(drawn, wanted)
        self.check_heat(drawn["heat"], 11)
        self.assertEqual(len(drawn["heat"]["ranks"]), 373)
        for rank in slow:
            self.assertEqual(drawn["heat"]["ranks"][rank // 11][2], rank)

    def test_what_is_left_out_is_counted(self):
        """More ranks than are listed, more regions than are in the tables."""
        slow, page, wanted = self.forged(ranks=4200, culprits=1, slow=0.3, steps=30)
        job, drawn = kit.embedded(page, "job"), kit.embedded(page, "drawn")
        self.assertEqual((job["job"]["ranks"], len(job["ranks"]), len(drawn["rank_stages"])), (4200, 4096, 4096))
        numbers = [rank["rank"] for rank in job["ranks"]]
        self.assertEqual(numbers, sorted(numbers))
        self.assertIn(slow[0], numbers)
        left = [rank["late"] for rank in wanted["ranks"] if rank["rank"] not in set(numbers)]
        self.assertLessEqual(max(left), min(rank["late"] for rank in job["ranks"]))
        self.assertEqual(job["verdicts"], wanted["verdicts"])

    def test_many_regions(self):
        _, page, wanted = self.forged(ranks=4, regions=250, calls=5)
        job, drawn = kit.embedded(page, "job"), kit.embedded(page, "drawn")
        self.assertEqual((len(job["regions"]), drawn["totals"]["regions"]), (200, 250))
        self.assertEqual(job["regions"], wanted["regions"][:200])
        self.assertEqual([len(row) for row in drawn["rank_regions"]], [200] * 4)

    def test_of_one_rank_or_without_steps(self):
        kit.forge(FORGE, self.path("one"), ranks=1)
        kit.page(PK, self.path("one.html"), self.path("one"))
        kit.forge(FORGE, self.path("none"), ranks=4, steps=0, regions=2, calls=5)
        page = kit.page(PK, self.path("none.html"), self.path("none"))
        self.assertNotIn("heat", kit.embedded(page, "drawn"))

    def test_to_standard_output(self):
        kit.forge(FORGE, self.path("job"), ranks=4)
        page = kit.page(PK, self.path("page.html"), self.path("job"))
        done = kit.pk_job(PK, "--html", "-", self.path("job"))
        with open(page, encoding="utf-8") as file:
            # But for the way from the page to the files.
            self.assertEqual(done.stdout.split('{"base":')[0], file.read().split('{"base":')[0])
        self.assertTrue(done.stdout.endswith("</html>\n"))

    def test_what_is_wrong_is_said(self):
        kit.forge(FORGE, self.path("job"), ranks=2)
        job = self.path("job")
        for arguments, says in ((["--html", "x.html", "--json", job], "--html or --json"), (["--html", "x.html", "--against", self.path("gone"), job], "gone"),
                                (["--html", "x.html", "--against-steps", "900-950", job], "900-950"), (["--html"], "--html needs a file"),
                                (["--html", "/nowhere/x.html", job], "/nowhere/x.html: No such"), (["--html", self.folder, job], "is a directory"),
                                (["--html", "x.html", self.path("gone")], "gone")):
            done = kit.pk_job(PK, *arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(says, done.stderr)
        self.assertFalse(os.path.exists(self.path("x.html")))


if __name__ == "__main__":
    if kit.without_charts(PK):
        print("this pk was built without uPlot")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])

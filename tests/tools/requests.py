"""requests.py PK PK_SERVE - what the example's server leaves: stages, causes, goodput, metrics; and that clients see the
same."""

import json
import os
import re
import subprocess
import sys
import unittest

from traces import InFolder

PK, SERVE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FEWER = 2 if os.environ.get("PK_TEST_NO_LIMIT") else 1  # a sanitizer makes a model slow, which has tests of its own
PARTS = ("queued", "preempted", "prefill", "crowded", "decode", "behind")


class Requests(InFolder):
    def serve(self, *arguments, **options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        environment.update(PK_BACKENDS="none", PK_REPORT_PATH=self.path("report.json"), **options)
        done = subprocess.run([SERVE, *arguments], env=environment, check=False, timeout=500, cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("report.json"), encoding="utf-8") as file:
            return json.load(file), done.stdout

    def check_sums(self, requests):
        for parts in [requests["all"], requests["slow"], *(r["parts"] for r in requests["slowest"])]:
            self.assertEqual(sum(parts[p] for p in PARTS), parts["total"])

    def share(self, requests, part):
        return requests["all"][part] / requests["all"]["total"]

    @unittest.skipIf(FEWER > 1, "figures of a model alone: what memory they are in the others touch, too")
    def test_as_load_rises_the_queue_does(self):
        low, _ = self.serve("--load", "0.02", "--requests", "8")
        high, _ = self.serve("--load", "50", "--requests", str(40 // FEWER))
        for report, count in ((low, 8), (high, 40 // FEWER)):
            requests = report["requests"]
            self.assertEqual((requests["count"], requests["finished"]), (count, count))
            self.check_sums(requests)
        self.assertGreater(self.share(high["requests"], "queued"), self.share(low["requests"], "queued"))
        self.assertGreater(self.share(high["requests"], "queued"), 0.5)
        slowest = high["requests"]["slowest"][0]
        self.assertGreater(slowest["steps"], 0)
        self.assertLess(slowest["first_step"] + slowest["steps"], high["steps"]["count"] + 2)

    def test_clients_and_perfkit_agree(self):
        """Within 1 %, and what a busy machine puts between two clock reads of the same moment."""
        _, said = self.serve("--load", "1", "--requests", str(40 // FEWER), "--draft", "3")
        rows = re.findall(r"^(TTFT|TPOT|end to end) +clients: mean +([0-9.]+) ms.*perfkit: mean +([0-9.]+)", said,
                          re.MULTILINE)
        self.assertEqual([row[0] for row in rows], ["TTFT", "TPOT", "end to end"])
        for what, theirs, ours in rows:
            self.assertAlmostEqual(float(theirs), float(ours), delta=0.01 * float(theirs) + 50, msg=what)

    @unittest.skipIf(FEWER > 1, "test_requests.c has it")
    def test_goodput(self):
        report, _ = self.serve("--load", "1", "--requests", "10", "--ttft", "1000", "--tpot", "1000")
        requests = report["requests"]
        self.assertEqual((requests["good"], requests["goodput"], requests["slow"]["count"]), (10, 1, 0))
        self.assertEqual((requests["ttft_limit"], requests["tpot_limit"]), (10**12, 10**12))
        report, _ = self.serve("--load", "1", "--requests", "10", "--tpot", "0.000000001")
        requests = report["requests"]
        self.assertEqual((requests["good"], requests["slow"]["count"]), (0, 10))
        self.assertEqual(requests["slow"], requests["all"])

    def test_a_trace_alone_says_the_same(self):
        report, _ = self.serve("--load", "5", "--requests", str(30 // FEWER), PK_TRACE_PATH=self.path("run.json"))
        with open(self.path("run.json"), encoding="utf-8") as file:
            trace = json.load(file)
        ended = [e for e in trace["traceEvents"] if e.get("cat") == "span" and "outcome" in e.get("args", {})]
        self.assertEqual(len(ended), 30 // FEWER)
        del trace["perfkitReport"]
        with open(self.path("alone.json"), "w", encoding="utf-8") as file:
            json.dump(trace, file)
        done = subprocess.run([PK, "report", "--json", self.path("alone.json")], check=True, capture_output=True,
                              timeout=300)
        self.assertEqual(json.loads(done.stdout)["requests"], report["requests"])
        text = subprocess.run([PK, "report", self.path("run.json")], check=True, capture_output=True, timeout=300)
        text = text.stdout.decode()
        self.assertIn("REQUESTS and what they waited for", text)
        self.assertRegex(text, r"\n  queued, not scheduled yet +[0-9.]+ % ")
        ours = text.split("REQUESTS")[1].split("THREADS")[0]
        self.assertLessEqual(max(map(len, ours.splitlines())), 80)

    def test_metrics_have_the_names_of_the_conventions(self):
        self.serve("--load", "5", "--requests", "20", PK_METRICS_PATH=self.path("m.prom"))
        with open(self.path("m.prom"), encoding="utf-8") as file:
            text = file.read()
        for name in ("request_duration", "time_to_first_token", "time_per_output_token"):
            self.assertIn(f"# TYPE gen_ai_server_{name}_seconds histogram\n", text)
            self.assertRegex(text, rf"gen_ai_server_{name}_seconds_count{{[^}}]*}} 20\n")
        self.assertRegex(text, r"pk_requests_good_total{[^}]*} 20\n")


unittest.main(argv=sys.argv[:1])

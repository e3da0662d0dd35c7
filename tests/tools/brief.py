"""brief.py PK GOLDEN - pk report --brief: what the whole report says, in lines that a program reads."""

import json
import os
import subprocess
import sys
import unittest

from traces import InFolder, brief

PK, GOLDEN = sys.argv[1:3]


class Brief(InFolder):
    def file(self, text, name):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def report(self, *arguments):
        done = subprocess.run([PK, "report", *arguments], capture_output=True, timeout=300, check=False, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_brief(self):
        for name in ("train", "gpu", "comm", "capture"):
            path = os.path.join(GOLDEN, f"report-{name}.json")
            whole, told = json.loads(self.report("--json", path)), brief(self.report("--brief", path))
            self.assertEqual(told[0][0], "capture" if name == "capture" else "report")
            self.assertEqual([(f["name"], f["severity"], f["text"]) for key, f in told if key == "verdict"],
                             [(v["name"], v["severity"], " ".join(v["text"].split())) for v in whole["verdicts"]][:14])
            regions = [f for key, f in told if key == "region"]
            self.assertEqual([int(f["calls"]) for f in regions], [r["time"]["count"] for r in whole["regions"]][:12])
            self.assertEqual(int(dict(told)["step"]["p50_ns"]), whole["steps"]["steady"]["p50"])
            self.assertEqual(told[-1], ("next", {"": f"pk report {path}"}))
        why, cause = dict(told)["why"], dict(reversed(told))["cause"]
        self.assertEqual((why["step"], why["took_ns"], cause["region"], cause["more_ns"]), ("41", "53700000", "load", "41000000"))

    def test_brief_of_much(self):
        """Names that are no words, and more of everything than there is room for."""
        name = 'a "b" \\ c\n=\u00e9' + "\u00e9" * 400
        dist = {"count": 3, "sum": 9, "min": 1, "max": 5, "mean": 3, "stddev": 1, "p50": 3, "p90": 5, "p95": 5, "p99": 5}
        many = {"format": "perfkit report", "schema": 1,
                "verdicts": [{"name": "untracked", "severity": "note", "value": 1, "threshold": 0.2, "text": name}] * 50,
                "regions": [{"name": name, "kind": "compute", "time": dist, "self": 9}] * 50,
                "steps": {"count": 9, "steady": dist, "slowest": [{"index": 1, "duration": 7}] * 50}}
        path = self.file(json.dumps(many), "it's.json")
        told = brief(self.report("--brief", path))
        texts = [f.get("name" if key == "region" else "text") for key, f in told if key in ("region", "verdict")]
        self.assertEqual(set(texts), {name.replace("\n", "?")})
        self.assertEqual(told[-1][1][""], "pk report '" + path.replace("'", "'\\''") + "'")
        self.assertIn(("next", {"": "PK_OVERRIDE=1 PK_SAMPLES=99 PK_REPORT_PATH=next.json PROGRAM && pk report --brief next.json"}), told)
        done = subprocess.run([PK, "report", "--brief", "--json", path], capture_output=True, check=False, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--brief goes with", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

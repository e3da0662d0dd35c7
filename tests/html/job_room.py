"""job_room.py - what the page of a job does where there is little room: long names, narrow screens."""

import json
import os
import random

import job_kit as kit
from opened import scene
from room import BROKEN, UNTOLD

FULL = "document.documentElement.scrollWidth"


class JobRoom:
    def long_names(self):
        folder = os.path.join(self.folder, "long")
        kit.forge(self.forge, folder, ranks=4, culprits=1, slow=0.2, regions=2, calls=5)
        for path in kit.files(folder):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for i, name in enumerate(("backward", "region 1", "node0", "train")):
                text = text.replace(f'"{name}"', f'"{"n" * 5000}{i}{"m" * 5000}"')
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return kit.page(self.pk, folder + ".html", folder)

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
        kit.forge(self.forge, folder, ranks=ranks, report=1)
        for rank, path in enumerate(kit.files(folder)):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            report["comm"] = scene.collectives(random.Random(rank))
            for row in report["comm"]["communicators"]:
                row["library"] = "MPI"
            report["comm"]["communicators"][0]["name"] = "MPI_COMM_WORLD messages"
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file)
        return kit.page(self.pk, folder + ".html", folder), json.loads(kit.pk_job(self.pk, "--json", folder).stdout)

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
            sent = [f"{kit.digits(size / 1000)}\u202fkB" for _, _, _, size, _ in job["messages"]["matrix"]]
            self.assertEqual({text for text in shown if text}, set(sent) if ranks == 4 else set())
            page.close()

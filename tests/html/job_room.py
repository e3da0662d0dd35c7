"""job_room.py - what the page of a job does where there is little room: long names, narrow screens."""

import os

import job_kit as kit

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

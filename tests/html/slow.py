"""slow.py - the page of a capture: why its step was slow, both steps as a timeline, the call tree."""

import hashlib
import json
import os
import sys

from opened import Pages, run, scene

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "tools"))

import traces  # noqa: E402

MS = traces.MS
TOLD = "document.querySelector('#timeline .told').textContent"


def text_of(page, chosen):
    return page.ask(f"document.querySelector('{chosen}').innerText")


class SlowStep(Pages):
    """One page of a capture for all tests, made at the first."""

    made = None

    def setUp(self):
        if SlowStep.made is None:
            events, rows = traces.loop([2 * MS, 2 * MS + 40_000, 2 * MS - 20_000, 43 * MS])
            self.file("slow.json", traces.capture(events, rows, kernels=[41]))
            SlowStep.made = self.open(self.make("slow.json", "slow.html"))
            SlowStep.made.frames()
        self.shown = SlowStep.made

    def focus(self, pane):
        self.shown.ask(f"document.querySelectorAll('#timeline canvas')[{pane}].focus()")
        self.shown.key("Escape")

    def ink(self, pane):
        url = self.shown.ask(f"document.querySelectorAll('#timeline canvas')[{pane}].toDataURL()")
        return hashlib.sha256(url.encode()).hexdigest()

    def test_it_says_why(self):
        self.sound(self.shown)
        text = text_of(self.shown, "#slow")
        self.assertIn("step 41 took 53.7\u202fms, 4.23 × the median", text)
        self.assertIn("load +41.0\u202fms; all else", text)
        self.assertRegex(text, r"loader: read file\s+43.0\u202fms\s+3.00\u202fms\s+\+40.0\u202fms")
        self.assertRegex(text, r"GPU 0: gemm\s+1.00\u202fms\s+1.00\u202fms")
        self.assertRegex(text, r"With kernels\s+41")
        self.assertNotRegex(text, "NaN|undefined|Infinity|null")
        self.assertEqual(self.shown.ask("document.querySelector('main section').id"), "slow")

    def test_both_steps_are_drawn_at_one_scale(self):
        for pane in 0, 1:
            colours = self.shown.ask(f"""(() => {{
                const canvas = document.querySelectorAll('#timeline canvas')[{pane}], seen = new Set();
                const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
                for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) seen.add(data[i] + ',' + data[i + 1] + ',' + data[i + 2]);
                return seen.size; }})()""")
            self.assertGreater(colours, 2)
        data = json.loads(self.shown.ask("document.getElementById('timeline-data').textContent"))
        self.assertEqual([(step["index"], step["took"]) for step in data["steps"]], [(41, 53_700_000), (38, 12_700_000)])
        self.assertEqual([lane["sort"] for lane in data["lanes"]].count("device"), 1)

    def test_keys_choose_and_zoom(self):
        self.focus(0)
        self.assertIn("use the arrow keys", self.shown.ask(TOLD))
        whole = self.ink(0)
        self.shown.key("ArrowRight")
        self.assertEqual(self.shown.ask(TOLD), "load, 43.0\u202fms on trainer, 0\u202fns after the step’s beginning")
        self.shown.key("ArrowRight")
        self.assertIn("forward, 10.2\u202fms on trainer, 43.0\u202fms", self.shown.ask(TOLD))
        self.shown.key("ArrowDown")
        self.assertIn("attention, 3.00\u202fms", self.shown.ask(TOLD))
        self.shown.key("ArrowUp")
        self.assertIn("forward,", self.shown.ask(TOLD))
        chosen = self.ink(0)
        self.shown.key("+")
        self.assertNotEqual(self.ink(0), chosen)
        self.shown.key("Escape")
        self.assertEqual(self.ink(0), whole)
        self.focus(1)
        self.shown.key("ArrowRight")
        self.assertIn("load, 2.00\u202fms", self.shown.ask(TOLD))
        self.shown.key("Escape")

    def test_the_mouse_chooses_and_moves(self):
        self.focus(0)
        x, y, wide = self.shown.ask("(() => { const c = document.querySelector('#timeline canvas'); c.scrollIntoView({block: 'center'});"
                                    "const b = c.getBoundingClientRect(); return [b.x, b.y, b.width]; })()")
        self.shown.mouse("Moved", x + wide / 3, y + 26)
        self.assertIn("load, 43.0", self.shown.ask(TOLD))
        self.shown.key("ArrowRight")  # forward: near it there is more than one slice
        self.shown.ask("document.querySelector('#timeline .tools button').click()")
        before = self.ink(0)
        self.shown.ask("""(() => { const c = document.querySelector('#timeline canvas'), b = c.getBoundingClientRect();
            const at = (type, x) => c.dispatchEvent(new PointerEvent(type, { clientX: b.x + x, clientY: b.y + 26, buttons: 1, bubbles: true }));
            at('pointerdown', 200); at('pointermove', 120); at('pointerup', 120); })()""")
        self.assertNotEqual(self.ink(0), before)
        self.focus(0)

    def test_the_tree_opens_and_sorts(self):
        names = "[...document.querySelectorAll('#tree tbody th')].map((h) => h.textContent.replace(/[▾▸] /, ''))"
        self.assertIn("attention", self.shown.ask(names))
        toggle = "document.querySelector('#tree tbody button[aria-expanded]')"
        self.shown.ask(f"{toggle}.focus()")
        self.shown.key("Enter")
        self.assertEqual(self.shown.ask(f"{toggle}.getAttribute('aria-expanded')"), "false")
        self.assertNotIn("attention", self.shown.ask(names))
        self.assertTrue(self.shown.ask(f"document.activeElement === {toggle}"))
        self.shown.ask("document.querySelector('[data-sort=calls]').click()")
        self.assertEqual(self.shown.ask("document.querySelector('#tree th[aria-sort]').textContent"), "Calls ↓")
        calls = self.shown.ask("[...document.querySelectorAll('#tree tbody tr')].map((r) => Number(r.cells[1].textContent))")
        self.assertEqual(calls, sorted(calls, reverse=True))
        self.shown.ask("document.querySelector('[data-sort=time]').click()")
        self.shown.ask("document.querySelector('#tree .tools button').click()")
        self.assertIn("attention", self.shown.ask(names))

    def test_on_a_phone(self):
        page = self.open(os.path.join(self.folder, "slow.html"), width=390, height=800)
        page.frames()
        self.sound(page)
        self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), 390)
        self.assertLessEqual(page.ask("document.querySelector('#slow table').getBoundingClientRect().right"), 390)
        self.assertGreater(page.ask("document.querySelector('#timeline canvas').clientWidth"), 280)
        page.close()

    def test_names_are_not_markup(self):
        events, rows = traces.loop([2 * MS, 43 * MS])
        hostile = [line.replace('"load"', json.dumps(scene.HOSTILE)).replace('"loader"', json.dumps(scene.HOSTILE)) for line in events]
        self.file("hostile.json", traces.capture(hostile, rows, text=scene.HOSTILE))
        page = self.open(self.make("hostile.json", "hostile.html"))
        self.sound(page)
        page.ask("document.querySelector('#timeline canvas').focus()")
        page.key("ArrowRight")
        self.assertIn("</script>", page.ask(TOLD))
        self.sound(page)
        page.close()

    def test_the_longest_step_of_a_trace(self):
        self.file("trace.json", traces.trace())
        page = self.open(self.make("trace.json", "trace.html"))
        self.sound(page)
        self.assertEqual(page.ask("document.querySelector('#slow h2').textContent"), "The longest step")
        self.assertEqual(page.ask("document.querySelectorAll('#timeline canvas').length"), 2)
        page.close()

    def test_its_size_is_bounded(self):
        lines, now = [traces.named(traces.PID, "main")], 0
        for step in range(2):
            begin = now
            for i in range(60_000):
                lines.append(traces.slice_of(f"r{i % 7}", traces.PID, now, now + 700 + 300 * step))
                now += 1500 + 300 * step
            lines.append(traces.step_of(step, begin, now))
        self.file("many.json", traces.trace(lines))
        path = self.make("many.json", "many.html")
        self.assertLess(os.path.getsize(path), 2_000_000)
        page = self.open(path)
        self.sound(page)
        data = json.loads(page.ask("document.querySelector('script#timeline-data').textContent"))
        self.assertLessEqual(len(data["slices"]), 20_000)
        self.assertEqual(sum(row[6] for row in data["slices"]), 120_000)
        self.assertIn("are drawn together with their neighbours", text_of(page, "#slow"))
        page.close()

    def test_a_report_has_none_of_it(self):
        self.assertIsNone(self.page.ask("document.getElementById('slow')"))
        self.assertIsNone(self.page.ask("document.getElementById('tree')"))
        done = run("--html", "-", os.path.join(self.folder, "run.json"))
        self.assertNotIn(b"timeline-data", done.stdout.replace(b"embedded('timeline-data')", b""))

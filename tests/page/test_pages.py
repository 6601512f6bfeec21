#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_pages.py BELAY FOLDER PROGRAMS [--measure] [name...] - the pages that Belay writes, in a browser, as
a user has them: mouse, keys, dark, narrow. PROGRAMS is the folder of those that the tests of the
command run. Exit status 77: no browser here.

--measure  instead: how long a page of a million events takes to open, and what memory
"""
import os
import shutil
import subprocess
import sys
import time

from browser import Browser

HEADER = "time_us\top\tid\tbytes\tstream\ttag\n"
MIB = 1 << 20
# Three blocks: over changes 1..6, y by best fit: weight 0..64, cache 64..96, temp 96..112 MiB.
STORY = [(0, "a", 1, 64 * MIB, "weight"), (100, "e", 0, 0, "step 0"), (200, "a", 2, 32 * MIB, "cache"),
         (300, "a", 3, 16 * MIB, "temp"), (400, "f", 3, 0, "-"), (900, "f", 2, 0, "-"),
         (1000, "f", 1, 0, "-")]


class Pages:
    def __init__(self, belay, folder, programs, browser):
        self.belay, self.folder, self.programs = belay, folder, programs
        self.browser = browser

    def run(self, *arguments, to=os.devnull):
        with open(to, "wb") as out:
            subprocess.run([self.belay, *arguments], check=True, stdout=out)

    def file(self, name, rows):
        path = os.path.join(self.folder, name + ".tsv")
        with open(path, "w", encoding="utf-8") as out:
            out.write(HEADER)
            for time_us, op, ident, size, tag in rows:
                out.write(f"{time_us}\t{op}\t{ident}\t{size}\t0\t{tag}\n")
        return path

    def view(self, name, rows, **how):
        page = os.path.join(self.folder, name + ".html")
        self.run("view", self.file(name, rows), "-o", page)
        self.browser.open(page, **how)
        return self.browser


def equal(seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{seen!r}, not {wanted!r}")


def contains(seen, wanted):
    if wanted not in seen:
        raise AssertionError(f"no {wanted!r} in {seen!r}")


def ends(b, drawing="curve"):
    return b.js(f"Array.from(document.querySelector('#{drawing} + .ends').children,"
                "e => e.textContent)")


# ── The page of a recording ──────────────────────────────────────────────────────────────────


def the_mouse_tells_what_is_there(pages):
    b = pages.view("story", STORY)
    contains(b.text("h1"), "story.tsv")
    equal(ends(b), ["change 0, 0.000000 s", "change 6, 0.001000 s"])
    b.hover("#curve", x=3.5 / 7)  # between the third change and the fourth: all are live
    contains(b.text("#told"), "card 0: live 117440512 B (112 MiB); 64 MiB weight")
    b.hover("#blocks", x=2.5 / 7, y=1 - 80 / 112)
    contains(b.text("#block"), "cache: 33554432 B (32 MiB), made at 0.000200 s, freed at 0.000900 s")
    b.hover("#blocks", x=0.2 / 7, y=0.5)  # nothing is live there
    equal(b.text("#block"), "")


def a_click_holds_a_block_until_escape(pages):
    b = pages.view("story", STORY)
    b.click("#blocks", x=3.5 / 7, y=1 - 104 / 112)
    contains(b.text("#block"), "temp: 16777216 B (16 MiB)")
    b.hover("#curve")
    contains(b.text("#block"), "temp: 16777216 B (16 MiB)")
    b.key("Escape")
    equal(b.text("#block"), "")
    equal(b.text("#told"), "")


def many(n):
    for i in range(n):
        yield i * 10, "a", i + 1, 1024 * (i % 7 + 1), f"op{i % 5}"
        if i >= 8:
            yield i * 10 + 5, "f", i - 7, 0, "-"


def wheel_and_drag_zoom_and_move(pages):
    b = pages.view("many", many(1000))
    whole = ends(b)
    equal(whole[0], "change 0, 0.000000 s")
    for _ in range(8):
        b.wheel("#curve", -100)
    near = ends(b)
    if near == whole:
        raise AssertionError("the wheel did not zoom")
    equal(near, ends(b, "blocks"))  # the drawings stay side by side
    b.drag("#curve", 0.3, 0.6)
    first = int(ends(b)[0].split()[1].rstrip(","))
    if first >= int(near[0].split()[1].rstrip(",")):
        raise AssertionError(f"{ends(b)} is not left of {near}")
    b.js("document.activeElement.blur()")
    moved = ends(b)
    b.wheel("#curve", -100, ctrl=False)  # the page's own
    equal(ends(b), moved)
    b.click("#whole")
    equal(ends(b), whole)


def keys_do_what_the_mouse_does(pages):
    b = pages.view("story", STORY)
    b.js("document.querySelector('#blocks').focus()")
    b.key("n")
    contains(b.text("#block"), "weight: 67108864 B (64 MiB)")  # the largest area
    b.key("n")
    contains(b.text("#block"), "cache")
    b.key("p")
    contains(b.text("#block"), "weight")
    b.key("Home")
    contains(b.text("#told"), "card 0: live 0 B")
    b.key(".")
    contains(b.text("#told"), "live 67108864 B")
    b.key("ArrowRight")
    contains(b.text("#told"), "live 100663296 B")
    b.key("ArrowLeft")
    contains(b.text("#told"), "live 67108864 B")
    b.key("End")
    contains(b.text("#told"), "live 0 B")
    b.key("t")
    equal(ends(b), ["0.000000 s", "0.001000 s"])
    equal(b.js("document.querySelector('#axis').getAttribute('aria-pressed')"), "true")
    b.key("t")
    equal(ends(b), ["change 0, 0.000000 s", "change 6, 0.001000 s"])


def keys_zoom_and_move(pages):
    b = pages.view("many", many(1000))
    whole = ends(b)
    b.js("document.querySelector('#curve').focus()")
    b.key("+")
    b.key("+")
    near = ends(b)
    b.key("ArrowRight", shift=True)
    right = ends(b)
    if right == near or near == whole:
        raise AssertionError(f"{whole} {near} {right}")
    b.key("ArrowLeft", shift=True)
    equal(ends(b), near)
    b.key("0")
    equal(ends(b), whole)


def tab_reaches_everything_in_order(pages):
    b = pages.view("story", STORY)
    seen = []
    for _ in range(16):
        b.key("Tab")
        seen.append(b.focused())
    equal(seen[:9], ["memory", "axis", "whole", "find", "Keys and mouse", "curve", "stack", "blocks",
                     "What does not apply, and what the file cannot tell"])
    equal(seen[9:15], ["at the peak", "blocks", "at the end", "altogether", "made", "site"])


def finding_hides_rows_and_fades_blocks(pages):
    b = pages.view("story", STORY)
    rows = "Array.from(document.querySelectorAll('table.sort tbody tr:not([hidden]) td.site')," \
           "e => e.textContent.trim())"
    equal(b.js(rows), ["weight", "cache", "temp"])
    strong = b.pixel("#blocks", 3.5 / 7, 1 - 32 / 112)
    b.key("/")
    equal(b.focused(), "find")
    b.write("CA")
    equal(b.js(rows), ["cache"])
    equal(b.text("#found"), "1 rows, 1 blocks drawn")
    if b.pixel("#blocks", 3.5 / 7, 1 - 32 / 112) == strong:
        raise AssertionError("what is not looked for stands out as before")
    b.key("Backspace")
    b.key("Backspace")
    equal(b.js(rows), ["weight", "cache", "temp"])
    equal(b.text("#found"), "")
    equal(b.pixel("#blocks", 3.5 / 7, 1 - 32 / 112), strong)


def tables_sort_by_the_column_that_is_clicked(pages):
    b = pages.view("story", STORY)
    first = "document.querySelector('table.sort tbody td.site').textContent.trim()"
    b.click("table.sort th:last-child button")
    equal(b.js(first), "cache")  # by name
    b.click("table.sort th:last-child button")
    equal(b.js(first), "weight")
    b.click("table.sort th:first-child button")
    b.click("table.sort th:first-child button")
    equal(b.js(first), "temp")  # least first
    equal(b.js("document.querySelector('table.sort th').getAttribute('aria-sort')"), "ascending")


def dark_and_narrow_are_read_as_well(pages):
    b = pages.view("story", STORY, width=360, height=640, dark=True)
    equal(b.js("document.documentElement.scrollWidth"), 360)
    equal(b.js("getComputedStyle(document.body).backgroundColor"), "rgb(24, 26, 29)")
    equal(b.js("getComputedStyle(document.querySelector('table.sort td.site')).display"),
          "table-cell")
    right = "Math.ceil(document.querySelector('table.sort td.site').getBoundingClientRect().right)"
    if b.js(right) > 360:
        raise AssertionError("who holds memory is out of sight")


def nothing_and_one_event_are_pages_too(pages):
    b = pages.view("nothing", [])
    contains(b.text("body"), "Nothing was allocated, so there is nothing to draw.")
    equal(b.js("document.querySelectorAll('canvas, script').length"), 0)
    b = pages.view("one", STORY[:1])
    equal(ends(b), ["change 0, 0.000000 s", "change 1, 0.000000 s"])
    b.click("#blocks", x=0.9)
    contains(b.text("#block"), "weight: 67108864 B (64 MiB), made at 0.000000 s, still live at the end")
    b.key("+")
    b.key("t")
    b.key("n")


def texts_of_a_file_are_never_markup(pages):
    evil = "</script><img src=x onerror=alert(1)>'\"&"
    b = pages.view("evil", [(0, "a", 1, 4096, evil), (1, "e", 0, 0, evil)])
    equal(b.js("document.images.length"), 0)
    equal(b.js("document.querySelector('table.sort td.site').textContent.trim()"), evil)
    contains(b.text("#key"), evil)


# ── The page of a report ─────────────────────────────────────────────────────────────────────


def report_of(pages, *command, **how):
    page = os.path.join(pages.folder, "report.html")
    pages.run("run", "--report", page, "--", *command)
    pages.browser.open(page, **how)
    return pages.browser


def table_of(b, title):
    """Rows of the table below a heading."""
    return b.js(f"""(() => {{ const h = Array.from(document.querySelectorAll('h2')).find(
        e => e.textContent === {title!r});
        return Array.from(h.nextElementSibling.querySelectorAll('tbody tr'),
            r => Array.from(r.cells, c => c.textContent)); }})()""")


def times_of_calls_are_drawn(pages):
    trace, page = (os.path.join(pages.folder, "times." + end) for end in ("trace", "html"))
    pages.run("run", "--report", "none", "--trace", trace, "--",
              os.path.join(pages.programs, "stories"), "waste")
    pages.run("view", trace, "-o", page)
    b = pages.browser
    b.open(page)
    equal([row[:3] for row in table_of(b, "How long calls took")],
          [[call, size, n] for call in ("alloc", "free")
           for size, n in (("all sizes", "2005"), ("up to 4 KiB", "2000"), ("up to 1 MiB", "3"),
                           ("up to 16 MiB", "2"))])
    equal(b.js("""Array.from(document.querySelectorAll('h3 + .times svg'),
        svg => svg.querySelectorAll('g').length)"""), [64, 64])
    # p50 is inside p99, that inside the longest, and all stand on the ground.
    equal(b.js("""Array.from(document.querySelectorAll('h3 + .times svg g')).every(g => {
        const [most, p99, p50] = ['.most', '.p99', '.p50'].map(
            c => g.querySelector(c)).map(r => +r.getAttribute('y'));
        return 0 <= most && most <= p99 && p99 <= p50 && p50 < 160; })"""), True)
    contains(b.js("document.querySelector('h3 + .times svg title').textContent"), "calls, p50 ")
    equal(b.js("document.querySelector('h3 + .times + .span').textContent.split(' s').length"), 3)
    # The scale is in words for people, within the drawing; what is exact stands beside each time.
    equal(b.js("""Array.from(document.querySelectorAll('.times i')).every(i =>
        /^\\d+(\\.\\d)? (ns|\u00b5s|ms|s)$/.test(i.textContent) &&
        parseFloat(i.style.top) > 0 && parseFloat(i.style.top) < 92)"""), True)
    equal(b.js("document.querySelectorAll('.times i').length") >= 4, True)
    equal(b.js("""Array.from(document.querySelectorAll('.calls td[title]')).every(cell => {
        const [n, unit] = cell.textContent.split(' ');
        const ns = +cell.title.split(' ')[0], of = {ns: 1, '\u00b5s': 1e3, ms: 1e6, s: 1e9}[unit];
        return Math.abs(n * of - ns) <= of * (n < 100 && of > 1 ? 0.0501 : 0.501); })"""), True)
    b.open(page, width=360, height=640, dark=True)
    equal(b.js("document.documentElement.scrollWidth"), 360)
    equal(b.js("getComputedStyle(document.querySelector('.times i')).fontSize"), "11px")


def a_report_is_a_page_with_the_same_figures(pages):
    b = report_of(pages, os.path.join(pages.programs, "linked"))
    equal(b.js("document.querySelector('table').rows[1].cells[1].title"), "35652584 B")
    holders = table_of(b, "Largest holders at the peak")
    equal([row[:5] for row in holders], [["32 MiB", "1", "32 MiB", "0 B", "1"],
                                         ["2.0 MiB", "2", "4.0 MiB", "2.0 MiB", "2"]])
    contains(holders[1][5], "load_weights")
    equal(table_of(b, "Calls")[0], ["card memory", "3", "1", "0", "0", "0"])
    equal(table_of(b, "Waste")[0], ["at the peak", "34.0 MiB", "34.0 MiB", "36.0 MiB", "5.5 %"])
    equal(table_of(b, "Calls to replace")[0][:2], ["2 MiB", "aclrtMallocAlign32"])
    equal(b.js("Array.from(document.querySelectorAll('.finding b'), e => e.textContent)"),
          ["1. leak: 2098152 B (2.0 MiB) in 2 blocks of card 0 never freed",
           "2. leaked-stream: 1 stream of card 0 never destroyed"])
    b.open(os.path.join(pages.folder, "report.html"), width=360, height=640, dark=True)
    equal(b.js("document.documentElement.scrollWidth"), 360)
    equal(b.js("getComputedStyle(document.body).backgroundColor"), "rgb(24, 26, 29)")


def processes_share_a_page(pages):
    linked = os.path.join(pages.programs, "linked")
    b = report_of(pages, "sh", "-c", f"{linked}; {linked}")
    equal(b.js("document.querySelectorAll('section').length"), 2)
    equal(b.js("document.querySelectorAll('.finding').length"), 4)


def a_page_of_nobody_says_so(pages):
    b = report_of(pages, "true")
    contains(b.text("section"), "no process has reported: none used a card")


# ── Pages of plans ───────────────────────────────────────────────────────────────────────────


def plain_page(pages, command, name, source_text):
    """Written, and without faults in the dark and narrow; then open as usual."""
    source, page = os.path.join(pages.folder, name), os.path.join(pages.folder, name + ".html")
    with open(source, "w", encoding="utf-8") as out:
        out.write(source_text)
    pages.run(*command, source, "--html", to=page)
    b = pages.browser
    b.open(page, width=360, height=640, dark=True)
    equal(b.js("document.documentElement.scrollWidth"), 360)
    equal(b.js("getComputedStyle(document.body).backgroundColor"), "rgb(24, 26, 29)")
    b.open(page)
    return b


# Texts of what is under the pointer or has the focus.
TIPS = "Array.from(document.querySelectorAll('.tip')).filter(" \
       "t => getComputedStyle(t).visibility === 'visible').map(t => t.textContent).join('|')"


def a_plan_tells_a_buffer_to_mouse_and_keys(pages):
    b = plain_page(pages, ["plan"], "plan.csv", "id,lower,upper,size\na,0,3,64\nb,2,5,32\n")
    equal(b.js(TIPS), "")
    b.hover("svg g:nth-of-type(2)")
    contains(b.js(TIPS), "b: 32 B at ")
    b.mouse("mouseMoved", [1, 1])
    b.key("Tab")
    contains(b.js(TIPS), "a: 64 B at ")


def thin_buffers_are_seen(pages):
    """A line of a fraction of a pixel is no outline of its own background, and not nothing."""
    thin = "".join(f"t{i},0,9,1\n" for i in range(50))
    b = plain_page(pages, ["plan"], "thin.csv", "id,lower,upper,size\nlarge,0,9,1000000\n" + thin)
    equal(b.js("""Array.from(document.querySelectorAll('rect.b'), r => getComputedStyle(r).stroke)
        .filter(s => s !== 'none').length"""), 2)  # the large one of both drawings
    equal(b.js("Array.from(document.querySelectorAll('rect.b')).every(r => r.getBBox().height > .3)"), True)


def nothing_is_cut_off(pages):
    """Numbers of the scale lie left of the drawing, and what is highest below its upper edge."""
    b = plain_page(pages, ["plan"], "edge.csv", "id,lower,upper,size\na,0,3,64\nb,2,5,32\n")
    equal(b.js("""Array.from(document.querySelectorAll('svg'), svg => {
        const back = svg.querySelector('.back').getBBox(), view = svg.viewBox.baseVal;
        const scale = Array.from(svg.querySelectorAll('text[x="-6"]'), t => t.getBBox());
        const top = Math.min(...Array.from(svg.querySelectorAll('rect.b'), r => r.getBBox().y));
        return scale.length > 2 && top > back.y + 5 &&
            scale.every(t => t.x >= view.x && t.x + t.width <= back.x);
    })"""), [True, True])


def a_checkpoint_tells_a_step_to_mouse_and_keys(pages):
    rows = [f"{i},layer,400,800,2,20,2,1,5\n" for i in range(1, 5)]
    b = plain_page(pages, ["checkpoint", "--budget", "60"], "chain.csv",
                   "stage,name,fwd_us,bwd_us,out,saved,grad,fwd_tmp,bwd_tmp\n" + "".join(rows))
    b.hover("svg[aria-label='steps'] g:nth-of-type(2)")
    contains(b.js(TIPS), "2: forward 2 layer")
    b.mouse("mouseMoved", [1, 1])
    b.key("Tab")
    contains(b.js(TIPS), "1: ")


TESTS = [the_mouse_tells_what_is_there, a_click_holds_a_block_until_escape,
         wheel_and_drag_zoom_and_move, keys_do_what_the_mouse_does, keys_zoom_and_move,
         tab_reaches_everything_in_order, finding_hides_rows_and_fades_blocks,
         tables_sort_by_the_column_that_is_clicked, dark_and_narrow_are_read_as_well,
         times_of_calls_are_drawn, nothing_and_one_event_are_pages_too, texts_of_a_file_are_never_markup,
         a_report_is_a_page_with_the_same_figures, processes_share_a_page,
         a_page_of_nobody_says_so, a_plan_tells_a_buffer_to_mouse_and_keys,
         thin_buffers_are_seen, nothing_is_cut_off,
         a_checkpoint_tells_a_step_to_mouse_and_keys]


def memory_of(process):
    """Bytes of a process and all that it started, shared ones split among their users."""
    total, waiting = 0, [process]
    while waiting:
        pid = waiting.pop()
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
                total += sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                waiting += map(int, children.read().split())
        except OSError:
            pass
    return total * 1024


def measure(pages):
    pages.browser.open(os.devnull)
    before = memory_of(pages.browser.process.pid)
    source = pages.file("million", many(500004))
    page = os.path.join(pages.folder, "million.html")
    start = time.monotonic()
    pages.run("view", source, "-o", page)
    written = time.monotonic()
    pages.browser.open(page)
    opened = time.monotonic()
    after = memory_of(pages.browser.process.pid)
    print(f"a page of 1,000,000 events: written in {written - start:.2f} s, "
          f"{os.path.getsize(page) / 1e6:.1f} MB, opened and drawn in {opened - written:.2f} s; "
          f"the browser has {after / MIB:.0f} MiB, {before / MIB:.0f} MiB without it")
    for what, act in (("zoom", lambda: pages.browser.wheel("#blocks", -100)),
                      ("hover", lambda: pages.browser.hover("#blocks", 0.3, 0.9)),
                      ("find", lambda: (pages.browser.key("/"), pages.browser.write("op3")))):
        start = time.monotonic()
        act()
        print(f"  {what}: {(time.monotonic() - start) * 1e3:.0f} ms until drawn")


def main():
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        print("no chromium here")
        return 77
    words = sys.argv[4:]
    os.makedirs(sys.argv[2], exist_ok=True)
    browser = Browser(program)
    pages = Pages(sys.argv[1], sys.argv[2], sys.argv[3], browser)
    failed = 0
    if "--measure" in words:
        measure(pages)
    else:
        for test in TESTS:
            if words and test.__name__ not in words:
                continue
            browser.complaints = []
            try:
                test(pages)
                equal(browser.complaints, [])
                print("ok    ", test.__name__)
            except (AssertionError, RuntimeError) as error:
                failed += 1
                print("FAILED", test.__name__, error)
                browser.screenshot(os.path.join(sys.argv[2], test.__name__ + ".png"))
    browser.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that is driven through its pipe (Chrome DevTools Protocol): no package of
Python's, no network, no port. One page at a time."""
import base64
import json
import os
import shutil
import subprocess
import tempfile


class Browser:
    """Keys and mouse as a user has them; what the page complains of lands in `complaints`."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="belay-page-")
        self.complaints = []
        self.next_id = 0
        self.events = []
        self.buffered = b""
        to_browser, self.to = os.pipe()
        self.of, from_browser = os.pipe()
        # The browser reads at 3 and writes at 4, whatever numbers these pipes have here.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"', "sh", program,
             "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", "--hide-scrollbars", "--no-first-run",
             f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except EOFError:
            pass
        self.process.wait()
        os.close(self.to)
        os.close(self.of)
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self):
        while b"\0" not in self.buffered:
            more = os.read(self.of, 1 << 20)
            if not more:
                raise EOFError("the browser ended")
            self.buffered += more
        text, _, self.buffered = self.buffered.partition(b"\0")
        return json.loads(text)

    def note(self, event):
        method, params = event["method"], event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(a.get("value")) for a in params["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        self.events.append(method)

    def call(self, method, **params):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.note(answer)

    def open(self, path, width=1200, height=900, dark=False):
        """Until the page has drawn."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events = []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.events:
            self.note(self.read())
        self.settle()

    def settle(self):
        """Until what was asked of requestAnimationFrame is done."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)}).textContent")

    def place(self, selector, x=0.5, y=0.5):
        """A point of an element, once it is in the window."""
        return self.js(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();
            return [r.left + {x} * r.width, r.top + {y} * r.height]; }})()""")

    def mouse(self, kind, at, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], **more)

    def hover(self, selector, x=0.5, y=0.5):
        at = self.place(selector, x, y)
        self.mouse("mouseMoved", at)
        self.settle()
        return at

    def click(self, selector, x=0.5, y=0.5):
        at = self.hover(selector, x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, at, button="left", clickCount=1)
        self.settle()

    def drag(self, selector, x_from, x_to, y=0.5):
        at, to = self.hover(selector, x_from, y), self.place(selector, x_to, y)
        self.mouse("mousePressed", at, button="left", buttons=1, clickCount=1)
        for part in (0.5, 1):
            self.mouse("mouseMoved", [at[0] + (to[0] - at[0]) * part, to[1]], button="left",
                       buttons=1)
        self.mouse("mouseReleased", to, button="left", clickCount=1)
        self.settle()

    def wheel(self, selector, by, x=0.5, ctrl=True):
        self.mouse("mouseWheel", self.hover(selector, x), deltaX=0, deltaY=by,
                   modifiers=2 if ctrl else 0)
        self.settle()

    def key(self, key, shift=False):
        printable = len(key) == 1
        what = {"key": key, "code": key, "modifiers": 8 if shift else 0}
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37,
                 "ArrowRight": 39, "Backspace": 8}
        if key in codes:
            what["windowsVirtualKeyCode"] = codes[key]
        if printable or key == "Enter":
            what["text"] = "\r" if key == "Enter" else key
        self.call("Input.dispatchKeyEvent", type="keyDown" if "text" in what else "rawKeyDown",
                  **what)
        what.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **what)
        self.settle()

    def write(self, text):
        for key in text:
            self.key(key)

    def pixel(self, selector, x, y):
        """[red, green, blue, alpha] of a canvas."""
        return self.js(f"""(() => {{ const c = document.querySelector({json.dumps(selector)});
            const g = Object.assign(document.createElement('canvas'), {{width: 1, height: 1}})
                .getContext('2d', {{willReadFrequently: true}});
            g.drawImage(c, Math.floor({x} * (c.width - 1)), Math.floor({y} * (c.height - 1)), 1, 1,
                        0, 0, 1, 1);
            return Array.from(g.getImageData(0, 0, 1, 1).data); }})()""")

    def focused(self):
        return self.js("document.activeElement.id || document.activeElement.textContent")

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as out:
            out.write(base64.b64decode(shot["data"]))

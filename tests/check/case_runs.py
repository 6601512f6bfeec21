# SPDX-License-Identifier: Apache-2.0
"""case_runs.py - runs a program with the checker in its processes, recorded, and judges what was
found: live, and in the recordings afterwards."""
import glob
import json
import os
import subprocess
import tempfile


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
    env.update(BELAY_HBM="1GiB", BELAY_CARDS="2", **more)
    return env


def report_of(path):
    """Findings of a report; None: the process was killed before it could write one."""
    with open(path) as file:
        report = json.load(file)
    return None if report.get("unfinished") else report["findings"]


def live(name, command, folder, variables=""):
    """variables: with blanks between; one without a value is not set."""
    more = dict(variable.split("=", 1) for variable in variables.split())
    env = environment(BELAY_STATE=os.path.join(folder, "state"), BELAY_CHECK="all",
                      BELAY_REPORT=os.path.join(folder, "report.%p.json"),
                      BELAY_TRACE=os.path.join(folder, "trace.%p"), BELAY_ERROR_EXITCODE="42")
    run = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={k: v for k, v in {**env, **more}.items() if v != ""})
    stderr = run.communicate(timeout=700)[1]
    reports = {path: report_of(path) for path in sorted(glob.glob(f"{folder}/report.*.json"))}
    findings = [finding for list_ in reports.values() for finding in list_ or []]
    own = reports.get(f"{folder}/report.{run.pid}.json", [])
    if own is None:
        raise AssertionError(f"{name}: no report; exit status {run.returncode}\n{stderr}")
    want = 42 if own else 0
    if run.returncode != want or "not so: " in stderr or " returned " in stderr:
        raise AssertionError(f"{name}: exit status {run.returncode}, not {want}\n{stderr}")
    for finding in findings:
        if "leak" not in finding["kind"] and finding["message"] not in stderr:
            raise AssertionError(f"{name}: not told at once: {finding['message']}")
    return findings


def offline(name, belay, folder):
    findings = []
    for trace in sorted(glob.glob(f"{folder}/trace.*")):
        run = subprocess.run([belay, "check", trace, "--json", "-", "--error-exitcode", "42"],
                             capture_output=True, text=True, timeout=700,
                             env=environment(BELAY_STATE="private"))
        if run.returncode not in (0, 42):
            raise AssertionError(f"{name}: belay check: {run.returncode}\n{run.stderr}")
        found = json.loads(run.stdout)["findings"]
        if run.returncode != (42 if found else 0):
            raise AssertionError(f"{name}: belay check: exit status {run.returncode}")
        findings += found
    return findings


def judge(title, kinds, part, findings, has_lines=True):
    """(kinds that were found, findings that are wrong); tells what is not as it should be."""
    want = sorted(kind for kind in kinds.split(",") if kind)
    missing, wrong = list(want), []
    for finding in findings:
        if finding["kind"] in missing:
            missing.remove(finding["kind"])
        else:
            wrong.append(finding)
    told = [finding["message"] + "\n" + finding.get("detail", "") for finding in findings]
    fits = all(any(piece in text for text in told) for piece in part.split("|") if piece)
    for finding in findings if has_lines else []:
        for site in finding["sites"]:
            if site["role"] not in ("alloc", "create", "map") and finding not in wrong:
                fits = fits and site["file"].endswith(".c") and site["line"] > 0
    if missing or wrong or not fits:
        got = sorted(finding["kind"] for finding in findings)
        print(f"{title}: found {got}, not {want}" + ("" if fits else f", '{part}'"))
        for finding in findings:
            print("   ", finding["kind"], finding["message"], finding.get("detail", ""))
            print("   ", [(s["role"], s["function"], s["line"]) for s in finding["sites"]])
    found = list(want)
    for kind in missing:
        found.remove(kind)
    return found, len(wrong) + (not fits)


def both(title, belay, command, kinds, part="", variables="", has_lines=True):
    """[(way, kinds that were found, findings that are wrong)] of a run and its recordings."""
    with tempfile.TemporaryDirectory() as folder:
        ways = (("live", live(title, command, folder, variables)),
                ("offline", offline(title, belay, folder)))
    return [(way, *judge(f"{title} {way}", kinds, part, findings, has_lines))
            for way, findings in ways]


def rows_of(program, which):
    """[(name, kinds, part, variables)] of a list of cases."""
    out = subprocess.run([program, which], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in out.splitlines()]

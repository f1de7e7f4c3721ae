#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_trace.py FILE RANKS [--part] [--perfetto]: is this a trace that Perfetto reads as it is meant? Prints what it has, or says what
is wrong and fails. Strict JSON; slices of a track are nested; every arrow has both ends, in slices, and does not go back in time; all
tracks and ranks have names. --perfetto: also by Perfetto's own trace processor, if it is there (exit status 77: it is not)."""
import collections
import gzip
import json
import os
import shutil
import sys


def fail(text):
    print("check_trace:", text)
    sys.exit(1)


def no_constant(text):
    fail("not JSON: " + text)


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return json.loads(file.read().decode("utf-8"), parse_constant=no_constant)


def ns(us):
    return round(us * 1000)


def check_nesting(slices):
    for track, list_of in slices.items():
        stack = []
        for begin, negative_end, name in sorted(list_of, key=lambda s: (s[0], s[1])):
            while stack and stack[-1][0] <= begin:
                stack.pop()
            if stack and stack[-1][0] < -negative_end:
                fail(f"track {track}: {name} ({begin} to {-negative_end}) reaches beyond {stack[-1][1]}, to {stack[-1][0]}")
            stack.append((-negative_end, name))


def check_arrows(events, slices, slack):
    begins, ends = {}, {}
    for e in events:
        if e["ph"] in "sf":
            where = begins if e["ph"] == "s" else ends
            if e["id"] in where:
                fail(f"two arrows have the id {e['id']}")
            where[e["id"]] = e
            track = e["pid"], e["tid"]
            if not any(begin == ns(e["ts"]) for begin, _, _ in slices[track]):
                fail(f"an arrow's end at {e['ts']} is in no slice of track {track}")
    if begins.keys() != ends.keys():
        fail(f"arrows with one end: {len(begins)} begin, {len(ends)} end")
    for key, s in begins.items():
        f = ends[key]
        if s["pid"] == f["pid"]:
            fail("an arrow stays in a rank")
        if ns(f["ts"]) + slack < ns(s["ts"]):
            fail(f"message {key} arrives {ns(s['ts']) - ns(f['ts'])} ns before it is sent")
    return len(begins)


def check_names(events):
    tracks = {(e["pid"], e["tid"]) for e in events if e["ph"] in "Xi"}
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    if tracks - named:
        fail(f"tracks without a name: {tracks - named}")
    return {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}


def check_messages(events):
    bytes_of = collections.Counter()
    for e in events:
        if e.get("cat") == "message" and e["ph"] == "X":
            sends = e["name"].startswith("send")
            other = e["args"]["partner"]
            bytes_of[(e["pid"], other) if sends else (other, e["pid"])] += e["args"]["bytes"] * (1 if sends else -1)
    if any(bytes_of.values()):
        fail(f"bytes sent and received differ: {bytes_of}")


def main():
    path, ranks, flags = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    events = read(path)["traceEvents"]
    slices = collections.defaultdict(list)
    for e in events:
        for key in ("ph", "pid", "tid"):
            if key not in e:
                fail(f"an event without {key}: {e}")
        if e["ph"] != "M" and e["ts"] < 0:
            fail(f"before the beginning: {e}")
        if e["ph"] == "X":
            begin, length = ns(e["ts"]), ns(e["dur"])
            slices[(e["pid"], e["tid"])].append((begin, -(begin + length), e["name"]))
    check_nesting(slices)
    there = check_names(events)
    if "--part" not in flags:
        if there != set(range(ranks)):
            fail(f"ranks {sorted(there)} instead of 0 to {ranks - 1}")
        slack = max([e["args"]["clock_error_ns"] for e in events if e["name"] == "process_labels"])
        arrows = check_arrows(events, slices, 2 * slack)
        check_messages(events)
    else:
        arrows = 0
    kinds = collections.Counter(e.get("cat", "?") for e in events if e["ph"] in "XiC")
    print(f"ranks {len(there)}, arrows {arrows}, " + ", ".join(f"{k} {n}" for k, n in sorted(kinds.items())))
    if "--perfetto" in flags:
        perfetto(path, events, arrows)


def perfetto(path, events, arrows):
    program = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    try:
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    except ImportError:
        program = None
    if not program:
        print("skipped: no trace_processor_shell in PATH (or TRACE_PROCESSOR), or no Python package perfetto")
        sys.exit(77)
    reader = TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=program))
    count = lambda text: next(iter(reader.query(text))).n
    expected = sum(e["ph"] in "Xi" for e in events)
    if count("select count(*) as n from slice") != expected:
        fail(f"Perfetto reads {count('select count(*) as n from slice')} slices of {expected}")
    if count("select count(*) as n from flow") != arrows:
        fail(f"Perfetto reads {count('select count(*) as n from flow')} arrows of {arrows}")
    problems = count("select ifnull(sum(value), 0) as n from stats where severity = 'error'")
    if problems:
        fail(f"Perfetto reports {problems} errors")
    reader.close()


main()

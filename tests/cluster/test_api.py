#!/usr/bin/env python3
"""test_api.py - what a real coordinator tells programs over HTTP, and the dashboard in a real browser.

    test_api.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import html.parser
import http.client
import itertools
import json
import re
import subprocess
import sys

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import browser, tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, TOKEN, Coordinator, await_event, secured  # noqa: E402

# What changes while one and the other are asked.
MOVING = {"heartbeat_age_s", "step", "loss", "tokens_per_s", "step_time_s", "eta_s"}


def coordinator_of():
    return Coordinator(coordinator_path, "--http", "127.0.0.1:0")


@contextlib.contextmanager
def cluster():
    """A coordinator, a worker, and a job that trains; its events as they come."""
    with coordinator_of() as one, contextlib.ExitStack() as stack:
        stack.enter_context(one.worker(worker_path, executor_path))
        events = stack.enter_context(one.submit(gimbal_path, "eval: {every: 1, holdout: 0.2}\n"))
        await_event(events, '"event":"step"')
        yield one, events


def get(one, path, **headers):
    status, reply, text = one.ask(path, **headers)
    assert status == 200 and reply["Content-Type"] == "application/json", (path, status, text)
    found = json.loads(text)
    assert found["apiVersion"] == "gimbal/v1", found
    return found


def command(one, *arguments):
    done = subprocess.run([gimbal_path, *arguments, "-o", "json"], env=one.environment, check=True,
                          capture_output=True, timeout=PATIENCE_S)
    return json.loads(done.stdout)


def at_rest(item, *without):
    return {key: value for key, value in item.items() if key not in MOVING and key not in without}


def lists_are_those_of_the_command():
    with cluster() as (one, _):
        nodes, listed = get(one, "/api/v1/nodes"), command(one, "nodes")
        profiles = [device.pop("profile") for device in listed["nodes"][0]["devices"]]
        assert [at_rest(node) for node in nodes["nodes"]] == [at_rest(node) for node in listed["nodes"]]
        assert json.loads(profiles[0]), "the command has what the list lacks"
        node = get(one, "/api/v1/nodes/node-a")
        assert [device["profile"] for device in node["devices"]] == profiles
        jobs, listed = get(one, "/api/v1/jobs"), command(one, "jobs")
        assert [at_rest(job) for job in jobs["jobs"]] == [at_rest(job) for job in listed["jobs"]]
        assert get(one, "/version")["kind"] == "Version"


def a_job_is_told_with_all_that_is_known_of_it():
    with cluster() as (one, events):
        await_event(events, '"event":"evaluation"')
        await_event(events, '"event":"step"')
        job = get(one, "/api/v1/jobs/j-1")
        listed = get(one, "/api/v1/jobs")["jobs"][0]
        assert at_rest(listed).items() <= at_rest(job).items()
        assert job["plan_content"]["id"] == job["plan"]
        assert job["plan_content"]["stages"][0]["devices"] == job["devices"] == ["node-a/0"]
        steps = [point["step"] for point in job["curve"]]
        assert steps == sorted(set(steps)) and steps[-1] >= 1, steps
        assert all(point["loss"] > 0 and point["time_s"] > 0 and point["tokens"] > 0 for point in job["curve"])
        assert job["evaluations"][0]["loss"] > 0
        assert job["candidates"].startswith("PLAN") and "global_batch: 4" in job["file"]
        assert job["checkpoints"] == []


@contextlib.contextmanager
def pipeline():
    """As cluster(), of two nodes that are a stage each."""
    with coordinator_of() as one, contextlib.ExitStack() as stack:
        for name in ("node-a", "node-b"):
            stack.enter_context(one.worker(worker_path, executor_path, name))
        events = stack.enter_context(one.submit(
            gimbal_path, "devices: {min: 2, max: 2}\nplan: {pin: {pp: 2, micro_batches: 2}}\n"))
        await_event(events, '"event":"step"')
        yield one, events


def drawn(one, events):
    """The timeline, once it is drawn and a step has been told of."""
    while True:
        shown = get(one, "/api/v1/jobs/j-1/timeline")
        if shown["predicted"] and shown["measured"]:
            return shown
        assert shown["pending"] == (shown["predicted_reason"] == "it is being simulated: ask again"), shown
        assert shown["predicted"] or shown["predicted_reason"], shown
        assert shown["measured_reason"], shown
        await_event(events, '"event":"step"')


def check_boxes(side, row, lanes):
    """Of both micro-batches there is a forward and a backward, unless they are too short to be drawn beside
    messages over a slow link, and nothing computes twice at a time. Returns how many are too short."""
    computed = {(box["section"], box["micro_batch"]) for box in row["boxes"] if box["lane"] == "compute"}
    expected = {(section, micro_batch) for section in ("forward", "backward") for micro_batch in (0, 1)}
    expected.add(("update", None))
    assert {box["lane"] for box in row["boxes"]} <= lanes, row
    assert {place for place in computed if place[0] in ("forward", "backward", "update")} <= expected, row
    assert all(0 <= box["begin_s"] < box["end_s"] <= side["step_s"] * 1.001 for box in row["boxes"]), row
    assert 0 < row["bubble"] < 1 and row["instructions_left_out"] == 0, row
    return len(expected - computed)


def a_step_is_told_as_it_was_predicted_and_as_it_was_measured():
    with pipeline() as (one, events):
        shown = drawn(one, events)
        job = get(one, "/api/v1/jobs/j-1")
        assert shown["kind"] == "Timeline" and shown["plan"] == job["plan"] and shown["epoch"] == job["epoch"]
        assert shown["predicted_reason"] == shown["measured_reason"] == "" and shown["ranks_left_out"] == 0
        assert [(rank["rank"], rank["stage"], rank["device"]) for rank in shown["ranks"]] == [
            (i, i, device) for i, device in enumerate(job["devices"])] and shown["rank_count"] == 2
        step = shown["measured"]["step"]
        assert step & (step - 1) == 0 or step % 256 == 0, step
        for name in ("predicted", "measured"):
            side = shown[name]
            assert side["step_s"] > 0 and 0 < side["bubble"] < 1 and side["ranks_without_boxes"] == 0, side
            short = sum(check_boxes(side, rank[name], {"compute", "communication"}) for rank in shown["ranks"])
            assert short <= side["boxes_left_out"], side
        assert get(one, "/api/v1/jobs/j-1/timeline")["predicted"] == shown["predicted"], "it is simulated once"
        subprocess.run([gimbal_path, "cancel", "j-1"], env=one.environment, check=True)
        assert events.wait(PATIENCE_S) == 1
        over = get(one, "/api/v1/jobs/j-1/timeline")
        assert over["predicted"] == shown["predicted"] and over["measured"]["step"] >= step, "it is there when the job is over"


def events_are_told_by_pages():
    with cluster() as (one, _):
        newest = get(one, "/api/v1/events?limit=1000")
        assert newest["more"] is False and all(event["event"] != "step" for event in newest["events"])
        revisions = [event["revision"] for event in newest["events"]]
        assert revisions == sorted(revisions) and revisions[-1] <= newest["revision"]
        two = get(one, "/api/v1/events?limit=2")
        before = two["events"][0]["revision"] - 1  # others may have come since `newest`
        assert two["events"] == get(one, f"/api/v1/events?after={before}&limit=2")["events"] and two["more"] is True
        read, after = [], 0
        while page := get(one, f"/api/v1/events?after={after}&limit=2")["events"]:
            read += page
            after = page[-1]["revision"]
        assert read[:len(newest["events"])] == newest["events"]
        assert "step" in {event["event"] for event in get(one, "/api/v1/events?steps=1&limit=1000")["events"]}
        assert {event["job"] for event in get(one, "/api/v1/events?job=j-1")["events"]} == {"j-1"}
        assert {event["node"] for event in get(one, "/api/v1/events?node=node-a")["events"]} == {"node-a"}
        listed = command(one, "events")["events"]
        assert [at_rest(event, "revision") for event in newest["events"]][:3] == listed[:3]


STREAMS_MAX = 32


@contextlib.contextmanager
def following(one, query="", tls=None, **headers):
    """The answer to who follows events, which has begun."""
    if tls:
        connection = http.client.HTTPSConnection("localhost", one.port, context=tls, timeout=PATIENCE_S)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("GET", "/api/v1/events/stream" + query, headers=headers)
        reply = connection.getresponse()
        if reply.status == 200:
            assert reply.headers["Content-Type"] == "text/event-stream"
            assert reply.readline() == b"retry: 2000\n" and reply.readline() == b"\n"
        yield reply


def next_event(reply):
    """The next one and its id; lines that say nothing are passed over."""
    line = b""
    while not line.startswith(b"id: "):
        line = reply.readline()
        assert line in (b":\n", b"\n") or line.startswith(b"id: "), line
    data = reply.readline()
    assert data.startswith(b"data: ") and reply.readline() == b"\n", data
    event = json.loads(data[6:])
    assert event["revision"] == int(line[4:])
    return event


def events_are_told_as_they_come():
    with cluster() as (one, events), following(one, "?after=0") as all_, following(one, "?after=0&node=node-a") as node:
        past = get(one, "/api/v1/events?after=0&limit=1000")["events"]
        assert [next_event(all_) for _ in past] == past
        assert next_event(node)["node"] == "node-a"
        with following(one, "?job=j-1") as news, following(one, "?steps=1") as steps:
            assert next_event(steps)["event"] in ("step", "evaluation")
            subprocess.run([gimbal_path, "cancel", "j-1"], env=one.environment, check=True)
            while (event := next_event(news))["event"] != "job-cancelled":
                assert event["job"] == "j-1" and event["revision"] > past[-1]["revision"] and event["event"] != "step"
        assert events.wait(PATIENCE_S) == 1
        before = event["revision"] - 1
        with following(one, "?after=0", **{"Last-Event-ID": str(before)}) as again:
            assert next_event(again) == event
        for wrong, words in ((str(event["revision"] + 1000), "there is no event"), ("x", "Last-Event-ID: 'x' is no whole")):
            with following(one, **{"Last-Event-ID": wrong}) as reply:
                assert reply.status == 400 and words in json.loads(reply.read())["detail"], wrong


def streams_are_for_who_may_read_and_not_too_many():
    with secured(coordinator_path, gimbal_path) as (one, tls):
        with following(one, tls=tls) as reply:
            assert reply.status == 401
        with following(one, tls=tls, Authorization=f"Bearer {TOKEN}") as reply:
            assert reply.status == 200
        with following(one, tls=tls, Authorization=f"Bearer {TOKEN}", Origin="https://evil.example") as reply:
            assert reply.status == 403
    with coordinator_of() as one, contextlib.ExitStack() as stack:
        for _ in range(STREAMS_MAX):
            assert stack.enter_context(following(one)).status == 200
        with following(one) as reply:
            assert reply.status == 503 and reply.headers["Content-Type"] == "application/problem+json"
            assert reply.headers["Retry-After"] == "10" and "32 streams" in json.loads(reply.read())["detail"]
        assert one.ask("/livez")[0] == 200 and get(one, "/api/v1/events")["events"] == []
        stack.close()  # which is seen before somebody else comes
        reply = stack.enter_context(following(one))
        assert reply.status == 200
        stack.enter_context(one.worker(worker_path, executor_path))
        assert next_event(reply)["event"] == "node-joined"


def what_is_asked_wrongly_is_refused():
    with coordinator_of() as one:
        for path, status, words in [
                ("/api/v1/jobs/j-1", 404, "there is no job 'j-1'"), ("/api/v1/nodes/x%00y", 404, "there is no node"),
                ("/api/v1/nodes/%FF%FE", 404, None),
                ("/api/v1/jobs/j-1/timeline", 404, "there is no job 'j-1'"), ("/api/v1/jobs//timeline", 404, "there is no job"),
                ("/api/v1/jobs/j-1/timelines", 404, "there is no job 'j-1/timelines'"), ("/api/v1/jobs/", 404, "there is no page"),
                ("/api/v1/events?limit=0", 400, "limit: '0' is no whole number from 1 to 1000"),
                ("/api/v1/events?limit=1001", 400, "limit"), ("/api/v1/events?after=-1", 400, "after: '-1'"),
                ("/api/v1/events?after=99999999999999999999", 400, "after"), ("/api/v1/events?after=", 400, "after"),
                ("/api/v1/events?steps=yes", 400, "steps: 'yes' is no whole number from 0 to 1"),
                ("/api/v1/events?limit", 200, None), ("/api/v1", 404, "there is no page '/api/v1'")]:
            got, headers, text = one.ask(path)
            assert got == status, (path, got, text)
            if words:
                assert headers["Content-Type"] == "application/problem+json", headers
                assert words in json.loads(text)["detail"], text
        assert get(one, "/api/v1/jobs")["jobs"] == get(one, "/api/v1/nodes")["nodes"] == []
        assert get(one, "/api/v1/events?after=99")["events"] == []


class References(html.parser.HTMLParser):
    """What a page loads."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, _tag, attributes):
        self.found += [value for name, value in attributes if name in ("src", "href")]


def the_dashboard_is_whole_and_holds_nothing_secret():
    with secured(coordinator_path, gimbal_path) as (one, tls):
        status, headers, text = one.ask("/", tls=tls)
        assert status == 200 and headers["Content-Type"].startswith("text/html"), headers
        assert "default-src 'none'" in headers["Content-Security-Policy"], headers
        total, wanted, seen = len(text), References(text).found, set()
        assert "main.js" in wanted
        while wanted:
            name = wanted.pop()
            if name in seen:
                continue
            seen.add(name)
            status, _, text = one.ask("/" + name, tls=tls)
            assert status == 200, name
            total += len(text)
            if name.endswith(".js"):
                wanted += re.findall(r'from "\./([a-z]+\.js)"', text)
        assert total < 500_000
        for path in ("nodes", "jobs", "events", "nodes/x", "jobs/x"):
            assert one.ask("/api/v1/" + path, tls=tls)[0] == 401
            assert one.ask("/api/v1/" + path, tls=tls, Authorization=f"Bearer {TOKEN}")[0] in (200, 404)


# The page when it has asked for everything and drawn it.
ASKED = 'document.getElementById("state").textContent.startsWith("gimbal ")'
DRAWN = 'document.querySelector(".track.measured rect")'


@contextlib.contextmanager
def looking(one, fragment="", until=ASKED):
    with browser.Browser() as page:
        page.open(one.url + "/" + fragment)
        page.until(until)
        yield page
        assert not page.complaints, page.complaints


def a_browser_shows_what_there_is():
    if not browser.find():
        return
    with coordinator_of() as one:
        with looking(one) as page:
            assert "There is no job yet" in page.text() and "No worker has reported yet" in page.text(), page.text()
        with one.submit(gimbal_path) as events:
            await_event(events, '"event":"job-pending"')
            with looking(one) as page:
                assert "There is nothing to draw: it has no plan now." in page.text(), page.text()
    with cluster() as (one, events):
        await_event(events, '"event":"evaluation"')
        with looking(one, "#j-1") as page:
            text = page.text()
        for words in ("1 node · 1 of 1 device busy · 1 job running", "a-job", "RUNNING", "stage 0 of j-1",
                      "Plan of j-1", "Loss, and on held-out data", "Plans that were looked at", "plan-chosen",
                      'class="line second"'):
            assert words in text, (words, text)
        subprocess.run([gimbal_path, "cancel", "j-1", "--reason", "<b>enough</b>"], env=one.environment, check=True)
        assert events.wait(PATIENCE_S) == 1
        with looking(one) as page:
            text = page.text()
        assert "&lt;b&gt;enough&lt;/b&gt;" in text and "<b>enough" not in text, text
        assert "CANCELLED" in text and "0 of 1 device busy · 0 jobs running" in text, text


def a_browser_draws_a_step_predicted_above_measured():
    if not browser.find():
        return
    with pipeline() as (one, events):
        drawn(one, events)
        with looking(one, until=DRAWN) as page:
            text = page.text()
            rows = re.findall(r'aria-label="(rank \d, \w+): bubble [\d.]+ %"', text)
            assert rows == [f"rank {rank}, {side}" for rank in (0, 1) for side in ("predicted", "measured")], text
            for section, micro_batch in itertools.product(("forward", "backward"), (0, 1)):
                title = rf"{section} of micro-batch {micro_batch}: [\d.]+ [mµ]?s, from"
                assert len(re.findall(rf'class="box {section}[^>]*><title>{title}', text)) >= 4, (title, text)
            assert ">A step of j-1: predicted above measured</h2>" in text, text
            page.look('document.querySelector(".timeline").focus()')
            page.press("ArrowRight")
            page.press("ArrowDown")
            said = page.look('document.querySelector("#timeline [role=status]").textContent')
            assert said.startswith("rank 0, measured: "), said
            page.size(390, 844)
            assert page.look("document.documentElement.scrollWidth") == 390, "it is wider than its window"


OVER = 'document.querySelectorAll("#curves svg .line[style]").length >= 3'


def a_browser_draws_curves_over_each_other():
    if not browser.find():
        return
    with coordinator_of() as one, one.worker(worker_path, executor_path):
        with one.submit(gimbal_path) as events:  # it writes what is learned from
            await_event(events, '"event":"step"')
        job = (one.folder / "job.yaml").read_text().replace("1000000000", "30") + "eval: {every: 10, holdout: 0.2}\n"
        subprocess.run([gimbal_path, "cancel", "j-1"], env=one.environment, check=True)
        for number in (2, 3):
            subprocess.run([gimbal_path, "submit", "-f", "-", "--wait", "-q"], input=job, text=True, env=one.environment,
                           check=True, capture_output=True)
        with looking(one, "#j-3+j-2", until=OVER) as page:
            text = page.text()
            assert all(f">{kind} of j-2 (a-job)</title>" in text for kind in ("loss", "held-out loss")), text
            page.look('document.querySelector("#curves input[data-key=\'over j-2\']").click()')
            page.until('location.hash === "#j-3" && document.querySelectorAll("#curves svg .line[style]").length === 0')
            page.look('document.querySelector("#curves input[data-key=\'over j-1\']").click()')
            page.until('location.hash === "#j-3+j-1" && document.querySelector("#curves svg .line[style]")')
        one.die_and_start_again()
        with looking(one, "#j-3+j-2", until=OVER) as page:
            assert ">loss of j-2 (a-job)</title>" in page.text()


# How often the page has asked for the list of events.
POLLS = 'performance.getEntriesByType("resource").filter((item) => item.name.includes("/api/v1/events?")).length'
POLLED_AGAIN = ('new Promise((done) => new PerformanceObserver(() => { if (' + POLLS + ' > 2) done(true); })'
                '.observe({ type: "resource", buffered: true }))')
FOLLOWED = 'performance.getEntriesByType("resource").length > 0 && document.body.innerText.includes("node-joined")'


def a_browser_hears_of_events_as_they_come():
    if not browser.find():
        return
    with coordinator_of() as one, contextlib.ExitStack() as stack:
        page = stack.enter_context(looking(one))
        stack.enter_context(one.worker(worker_path, executor_path))
        page.until(FOLLOWED)
        assert page.look(POLLS) <= 2, "it polls, though there is a stream for it"
    with coordinator_of() as one, contextlib.ExitStack() as stack:
        for _ in range(STREAMS_MAX):
            stack.enter_context(following(one))
        page = stack.enter_context(looking(one))
        stack.enter_context(one.worker(worker_path, executor_path))
        page.until(FOLLOWED)
        assert page.look(POLLED_AGAIN), "nobody told it of events"
        assert {item["entry"]["source"] for item in page.complaints} == {"network"}, page.complaints
        page.complaints.clear()  # of the stream that it was refused


sys.exit(tap.run([lists_are_those_of_the_command, a_job_is_told_with_all_that_is_known_of_it,
                  a_step_is_told_as_it_was_predicted_and_as_it_was_measured, events_are_told_by_pages, events_are_told_as_they_come,
                  streams_are_for_who_may_read_and_not_too_many, what_is_asked_wrongly_is_refused,
                  the_dashboard_is_whole_and_holds_nothing_secret, a_browser_shows_what_there_is,
                  a_browser_draws_a_step_predicted_above_measured, a_browser_draws_curves_over_each_other,
                  a_browser_hears_of_events_as_they_come]))

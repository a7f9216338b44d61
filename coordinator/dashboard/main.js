// main.js - asks the coordinator again and again, but for its events, which come, and has each part of the page
// drawn anew.
//
// Everything is read; nothing here can change the cluster. The token, where one is asked for, stays in
// the tab.
import { showCluster } from "./cluster.js";
import { showCurves } from "./curves.js";
import { follow, showEvents } from "./events.js";
import { inOrder, isOver, showJobs } from "./jobs.js";
import { showPlan } from "./plan.js";
import { showTimeline } from "./timeline.js";

const PAUSE_MS = 1000, NODES_EVERY = 3, MANY_NODES = 200, EVENTS_KEPT = 1000, PATIENCE_MS = 10000;
const part = (id) => document.getElementById(id);

const known = { nodes: [], jobs: [], job: null, others: [], timeline: null, events: [], revision: null, heard: 0, rounds: 0, release: "" };

class Refused extends Error {}

function credentials() {
    const token = sessionStorage.getItem("token");
    return token ? { Authorization: `Bearer ${token}` } : {};
}

async function ask(path) {
    const answer = await fetch(path, { headers: credentials(), signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.status === 401)
        throw new Refused();
    const body = await answer.json();
    if (!answer.ok)
        throw new Error(body.detail ?? `status ${answer.status}`);
    return body;
}

// "#j-3+j-1": the job that is shown, and those whose curves are drawn over its own.
function wantedJobs() {
    return location.hash.slice(1).split("+").map(decodeURIComponent).filter(Boolean);
}

function want(jobs) {
    location.hash = [...new Set(jobs)].map(encodeURIComponent).join("+");
}

function chosenJob() {
    const wanted = wantedJobs()[0];
    return known.jobs.find((job) => job.job === wanted)?.job ?? inOrder(known.jobs)[0]?.job ?? null;
}

// What is over does not change any more.
async function askOthers() {
    const wanted = wantedJobs().slice(1).filter((name) => name !== known.job?.job && known.jobs.some((job) => job.job === name));
    known.others = await Promise.all(wanted.map(async (name) => {
        const shown = known.others.find((other) => other.job === name);
        return shown && isOver(shown) ? shown : ask(`api/v1/jobs/${encodeURIComponent(name)}`);
    }));
}

// The newest at first, then what has come since; a coordinator that counts from less than we know of is another.
async function askEvents() {
    const asked = known.revision;
    const news = await ask(asked === null ? "api/v1/events?limit=200" : `api/v1/events?after=${asked}&limit=1000`);
    if (asked !== null && news.revision < asked) {
        known.events = [];
        known.revision = null;
        await askEvents();
        return;
    }
    add(news.events, news.more && news.events.length > 0 && asked !== null ? news.events.at(-1).revision : news.revision);
}

// What is known already, because it came both ways, is passed over.
function add(events, revision) {
    known.events = known.events.concat(events.filter((event) => event.revision > (known.revision ?? 0))).slice(-EVENTS_KEPT);
    known.revision = Math.max(known.revision ?? 0, revision);
}

// Events come by themselves where the coordinator has a stream for us, and are asked for where it has none.
const stream = { stop: null, open: false, notBefore: 0 };

function take(events) {
    if (events.length === 0)
        return;
    add(events, events.at(-1).revision);
    showEvents(part("events"), known.events);
}

async function followEvents() {
    if (stream.stop || document.hidden || Date.now() < stream.notBefore)
        return;
    stream.stop = new AbortController();
    await follow(known.revision, credentials(), stream.stop, () => { stream.open = true; }, take);
    stream.stop = null;
    stream.open = false;
    stream.notBefore = Date.now() + PATIENCE_MS;
}

// Often while it is being drawn, then now and then: ranks tell of few steps. Of a job that is over no other step comes.
async function askTimeline() {
    const shown = known.timeline, same = known.job && shown?.job === known.job.job && shown.epoch === known.job.epoch;
    const settled = same && shown.measured && isOver(known.job);
    if (!known.job)
        known.timeline = null;
    else if (!same || shown.pending || (!settled && known.rounds % NODES_EVERY === 0))
        known.timeline = await ask(`api/v1/jobs/${encodeURIComponent(known.job.job)}/timeline`);
}

async function askAll() {
    known.jobs = (await ask("api/v1/jobs")).jobs;
    if (known.rounds % (known.nodes.length > MANY_NODES ? 3 * NODES_EVERY : NODES_EVERY) === 0)
        known.nodes = (await ask("api/v1/nodes")).nodes;
    if (!stream.open)
        await askEvents();
    const chosen = chosenJob();
    const settled = known.job?.job === chosen && isOver(known.job) && known.rounds % NODES_EVERY;
    if (!settled)
        known.job = chosen ? await ask(`api/v1/jobs/${encodeURIComponent(chosen)}`) : null;
    await askOthers();
    await askTimeline();
    if (!known.release)
        known.release = (await ask("version")).release;
    known.rounds++;
    known.heard = Date.now();
}

function summary() {
    const lost = known.nodes.filter((node) => node.state === "LOST").length;
    const there = known.nodes.filter((node) => node.state !== "LOST");
    const devices = there.flatMap((node) => node.device_jobs), busy = devices.filter(Boolean).length;
    const waiting = known.jobs.filter((job) => job.state === "PENDING").length;
    const going = known.jobs.filter((job) => !isOver(job)).length - waiting;
    const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
    return `${many(there.length, "node")}${lost ? `, ${lost} lost` : ""} · ${busy} of ${many(devices.length, "device")} busy · `
        + `${many(going, "job")} running${waiting ? `, ${waiting} waiting` : ""}`;
}

function choose(job) {
    want([job, ...wantedJobs().slice(1)]);
}

function toggleOther(job) {
    const others = wantedJobs().slice(1);
    want([known.job.job, ...(others.includes(job) ? others.filter((other) => other !== job) : [...others, job])]);
}

function draw() {
    part("summary").textContent = summary();
    showJobs(part("jobs"), known.jobs, known.job?.job, choose);
    showCluster(part("cluster"), known.nodes, known.job);
    for (const id of ["plan-section", "curves-section", "timeline-section"])
        part(id).hidden = !known.job;
    if (known.job) {
        part("plan-title").textContent = `Plan of ${known.job.job}`;
        part("curves-title").textContent = `Training of ${known.job.job}`;
        part("timeline-title").textContent = `A step of ${known.job.job}: predicted above measured`;
        showPlan(part("plan"), known.job);
        showCurves(part("curves"), known.job, known.others, known.events, known.jobs, toggleOther);
        showTimeline(part("timeline"), known.timeline);
    }
    showEvents(part("events"), known.events);
}

function say(words, lost) {
    part("state").textContent = words;
    part("state").className = lost ? "lost" : "";
}

let timer = 0, asking = false;

async function round() {
    clearTimeout(timer);
    if (asking)
        return;
    asking = true;
    try {
        await askAll();
        part("door").hidden = true;
        draw();
        say(`gimbal ${known.release}`, false);
        followEvents();
    } catch (problem) {
        const asked = problem instanceof Refused;
        part("door").hidden = !asked;
        const since = known.heard ? ` for ${Math.round((Date.now() - known.heard) / 1000)} s; what is shown is of then` : "";
        say(asked ? "it wants the token" : `no answer${since}: ${problem.message}`, true);
    }
    asking = false;
    if (!document.hidden)
        timer = setTimeout(round, PAUSE_MS);
}

document.addEventListener("visibilitychange", () => {
    if (document.hidden)
        stream.stop?.abort();
    else
        round();
});
window.addEventListener("hashchange", round);
part("door").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", part("token").value);
    round();
});
round();

// jobs.js - the table of jobs; one is chosen, and the rest of the page is about it.
import { count, duration, html, show } from "./draw.js";

const OVER = new Set(["DONE", "FAILED", "CANCELLED"]);

export function isOver(job) {
    return OVER.has(job.state);
}

function rank(job) {
    return isOver(job) ? 2 : job.devices.length > 0 ? 0 : 1;
}

// Those that have devices, those that wait, those that are over; each kind from the newest.
export function inOrder(jobs) {
    return [...jobs].reverse().sort((a, b) => rank(a) - rank(b));
}

function tone(job) {
    if (job.state === "RUNNING" || job.state === "DONE")
        return "good";
    return job.state === "FAILED" || job.state === "FAILING" ? "bad" : "";
}

function progress(job) {
    if (!job.step_count)
        return "";
    const share = `${(100 * job.step / job.step_count).toFixed(1)} %`;
    return html("span", {}, html("progress", { max: job.step_count, value: job.step, "aria-label": share }), share);
}

function row(job, chosen, choose) {
    const button = html("button", { class: "link", "data-key": job.job, onclick: () => choose(job.job) }, job.job);
    return html("tr", { "aria-selected": String(job.job === chosen) },
        html("td", { class: "name" }, button), html("td", {}, job.name),
        html("td", { class: tone(job) }, job.state), html("td", { class: "name" }, progress(job)),
        html("td", { class: "number" }, job.eta_s > 0 ? duration(job.eta_s) : ""),
        html("td", { class: "number" }, job.step && job.loss ? job.loss.toFixed(3) : ""),
        html("td", { class: "number" }, job.tokens_per_s > 0 && !isOver(job) ? count(job.tokens_per_s) : ""),
        html("td", { class: "number" }, job.devices.length || ""),
        html("td", { class: "name" }, html("code", {}, job.plan)),
        html("td", { class: "reason quiet" }, job.reason));
}

const COLUMNS = [["Job"], ["Name"], ["State"], ["Progress"], ["Left", 1], ["Loss", 1], ["Tokens/s", 1],
    ["Devices", 1], ["Plan"], ["Reason"]];

export function showJobs(element, jobs, chosen, choose) {
    if (jobs.length === 0) {
        show(element, html("p", { class: "quiet" }, "There is no job yet: ", html("code", {}, "gimbal submit -f job.yaml"),
            " brings one."));
        return;
    }
    const heads = COLUMNS.map(([name, right]) => html("th", { class: right ? "number" : "", scope: "col" }, name));
    show(element, html("div", { class: "scroll" }, html("table", {},
        html("thead", {}, html("tr", {}, ...heads)),
        html("tbody", {}, ...inOrder(jobs).slice(0, 50).map((job) => row(job, chosen, choose))))));
}

// cluster.js - the map: a box for each node, in it a tile for each device.
import { bytes, html, show, stageColour } from "./draw.js";

// "node-a/0" of the chosen job: the stage that it computes.
function stagesByDevice(plan) {
    const found = new Map();
    (plan?.stages ?? []).forEach((stage, i) => {
        for (const device of stage.devices ?? [])
            found.set(device, { number: i, memory: stage.memory_bytes });
    });
    return found;
}

function memoryOf(node, device) {
    return device.memory_bytes || node.memory_bytes;
}

function tile(node, device, i, stage) {
    const name = `${node.name}/${device.index}`, memory = memoryOf(node, device), holder = node.device_jobs[i];
    const about = [`${name}: ${device.name || device.kind}, ${bytes(memory)}`], slowdown = node.device_slowdowns[i];
    const slow = slowdown > 1 ? " slow" : "";
    if (slow)
        about.push(`takes ${slowdown.toFixed(1)} times as long as predicted`);
    if (stage) {
        const share = Math.min(1, stage.memory / memory);
        about.push(`stage ${stage.number} of ${holder}`, `${bytes(stage.memory)} predicted, ${(100 * share).toFixed(0)} %`);
        return html("div", { class: `tile${slow}`, style: { background: stageColour(stage.number) }, title: about.join("\n") },
            `${device.kind} ${device.index}`, html("br"), `stage ${stage.number}`,
            html("span", { class: "memory" }, html("i", { style: { width: `${100 * share}%` } })));
    }
    about.push(holder ? `held by ${holder}` : "free");
    return html("div", { class: `tile ${holder ? "other" : "free"}${slow}`, title: about.join("\n") },
        `${device.kind} ${device.index}`, html("br"), holder || "free");
}

function box(node, stages, chosen) {
    const tiles = (node.devices ?? []).map((device, i) => {
        const holder = node.device_jobs[i];
        return tile(node, device, i, holder === chosen ? stages.get(`${node.name}/${device.index}`) : null);
    });
    const state = node.state === "ALIVE" ? "good" : node.state === "LOST" ? "bad" : "";
    return html("div", { class: node.state === "LOST" ? "node lost" : "node", title: node.reason || node.processor || "" },
        html("div", { class: "title" }, html("strong", {}, node.name), html("span", { class: state }, node.state)),
        html("div", { class: "tiles" }, ...tiles));
}

function legend(plan, chosen) {
    if (!plan)
        return null;
    return html("p", { class: "legend" }, ...plan.stages.map((stage, i) => html("span", {},
        html("span", { class: "swatch", style: { background: stageColour(i) } }), `stage ${i} of ${chosen}`)),
    html("span", {}, "bar: predicted of the device's memory; red frame: slower than predicted"));
}

export function showCluster(element, nodes, job) {
    if (nodes.length === 0) {
        show(element, html("p", { class: "quiet" }, "No worker has reported yet: ", html("code", {}, "gimbal-worker"),
            " on a node brings it."));
        return;
    }
    const running = job && job.devices.length > 0 ? job.plan_content : null, stages = stagesByDevice(running);
    show(element, html("div", { class: "nodes", "data-scroll": "", tabindex: "0", "data-key": "nodes" },
        ...nodes.map((node) => box(node, stages, job?.job))), legend(running, job?.job) ?? "");
}

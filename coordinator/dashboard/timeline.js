// timeline.js - a step of each rank as boxes, predicted above measured, on one axis of time.
import { html, seconds, show, svg, ticks } from "./draw.js";

const WIDTH = 1000, COMPUTE = 12, COMMUNICATION = 5, LEAST = 0.5, HEIGHT = COMPUTE + 1 + COMMUNICATION;
const SIDES = ["predicted", "measured"];
const PARTS = { forward: "forward", backward: "backward", reduce: "gradients", update: "optimizer" };
const LEGEND = ["forward", "backward", "gradients", "optimizer", "other", "communication"];
const MEANING = { gradients: "gradients put together", communication: "communication, or waiting for it",
    other: "weights, clearing, metrics" };
const HINT = "Point at a box to read what it is; with the keyboard, the arrow keys go from box to box.";

function partOf(box) {
    return box.lane === "communication" ? "communication" : PARTS[box.section] ?? "other";
}

function describe(box) {
    const micro = box.micro_batch === null ? "" : ` of micro-batch ${box.micro_batch}`;
    const moving = box.lane === "communication" ? ", moving data or waiting for it" : "";
    return `${box.section}${micro}${moving}: ${seconds(box.end_s - box.begin_s)}, from ${seconds(box.begin_s)}`;
}

function percent(share) {
    return share === null ? "?" : `${(100 * share).toFixed(1)} %`;
}

function drawBox(box, length) {
    const x = box.begin_s / length * WIDTH, width = Math.max(LEAST, box.end_s / length * WIDTH - x);
    const compute = box.lane === "compute", edged = width > 8 * LEAST ? " edged" : "";
    return svg("rect", { x, width, y: compute ? 0 : COMPUTE + 1, height: compute ? COMPUTE : COMMUNICATION,
        class: `box ${partOf(box)}${edged}` }, svg("title", {}, describe(box)));
}

// What a rank does on one side: its boxes, and the share of the step in which it does not compute.
function row(rank, side, length, marks) {
    const of = rank[side], boxes = of?.boxes ?? [], rects = boxes.map((box) => drawBox(box, length));
    const name = `rank ${rank.rank}, ${side}`;
    const lines = marks.map((mark) => svg("line", { x1: mark / length * WIDTH, x2: mark / length * WIDTH, y1: 0, y2: HEIGHT, class: "axis" }));
    const label = boxes.length > 0 ? `${name}: bubble ${percent(of.bubble)}` : `${name}: nothing is told of it`;
    const element = html("div", { class: `track ${side}` }, html("span", { class: "side" }, side),
        svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...lines, ...rects),
        html("span", { class: "bubble" }, of ? percent(of.bubble) : ""));
    return { name, boxes, rects, element };
}

function axis(length, marks) {
    return html("div", { class: "track scale", "aria-hidden": "true" }, html("span", { class: "side" }, "ms"),
        html("div", { class: "marks" }, ...marks.map((mark) => html("span", { style: { left: `${100 * mark / length}%` } },
            String(Number((mark * 1e3).toPrecision(6)))))),
        html("span", { class: "bubble" }, "bubble"));
}

// The arrow keys: along a row from box to box, and from row to row to the box at that time.
function walker(rows, status) {
    const full = rows.filter((one) => one.boxes.length > 0);
    let at = null;
    const go = (line, index) => {
        at?.rect.classList.remove("chosen");
        at = { line, index, rect: full[line].rects[index] };
        at.rect.classList.add("chosen");
        full[line].element.scrollIntoView({ block: "nearest" });
        status.textContent = `${full[line].name}: ${describe(full[line].boxes[index])}`;
    };
    const nearest = (boxes, time) => boxes.reduce((best, box, i) =>
        Math.abs(box.begin_s - time) < Math.abs(boxes[best].begin_s - time) ? i : best, 0);
    return (event) => {
        const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key], across = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (full.length === 0 || !(along || across))
            return;
        event.preventDefault();
        if (!at)
            go(0, 0);
        else if (along)
            go(at.line, Math.min(full[at.line].boxes.length - 1, Math.max(0, at.index + along)));
        else {
            const line = Math.min(full.length - 1, Math.max(0, at.line + across));
            go(line, line === at.line ? at.index : nearest(full[line].boxes, full[at.line].boxes[at.index].begin_s));
        }
    };
}

function summary(timeline) {
    const { predicted, measured } = timeline;
    const told = [];
    if (predicted)
        told.push(`Predicted: ${seconds(predicted.step_s)}, bubble ${percent(predicted.bubble)}.`);
    if (measured)
        told.push(`Measured at step ${measured.step}: ${seconds(measured.step_s)}, bubble ${percent(measured.bubble)}.`);
    return html("p", {}, told.join(" "));
}

// Which side is not there, and what of the others is not in the picture.
function remarks(timeline) {
    const words = SIDES.filter((side) => !timeline[side]).map((side) => `Nothing is ${side}: ${timeline[`${side}_reason`]}.`);
    const short = SIDES.filter((side) => timeline[side]?.boxes_left_out).map((side) =>
        `${timeline[side].boxes_left_out} boxes ${side} (${seconds(timeline[side].boxes_left_out_s)} of all ranks together)`);
    if (short.length > 0)
        words.push(`Too short to be seen: ${short.join(", ")}.`);
    for (const side of SIDES.filter((one) => timeline[one]?.ranks_without_boxes))
        words.push(`Too many to be shown: what is ${side} of ${timeline[side].ranks_without_boxes} ranks.`);
    if (timeline.ranks_left_out)
        words.push(`${timeline.ranks_left_out} of ${timeline.rank_count} ranks are not shown.`);
    return words.length > 0 ? html("p", { class: "small" }, words.join(" ")) : "";
}

function legend() {
    return html("p", { class: "legend" }, ...LEGEND.map((part) => html("span", {},
        html("span", { class: `swatch ${part}` }), MEANING[part] ?? part)));
}

function rankOf(rank, rows) {
    return html("div", { class: "rank" }, html("div", { class: "who" }, html("strong", {}, `rank ${rank.rank}`), " ",
        html("span", { class: "quiet" }, `stage ${rank.stage}${rank.device ? ` · ${rank.device}` : ""}`)),
    html("div", { class: "sides" }, ...rows.map((one) => one.element)));
}

function draw(element, timeline) {
    const length = Math.max(...SIDES.map((side) => timeline[side]?.step_s ?? 0));
    const ranks = [...timeline.ranks].sort((a, b) => a.rank - b.rank), marks = ticks(0, length, 5);
    const rows = ranks.map((rank) => SIDES.map((side) => row(rank, side, length, marks)));
    const status = html("p", { class: "small", role: "status" }, HINT);
    const all = html("div", { class: "timeline", "data-scroll": "", tabindex: "0", "data-key": "timeline", role: "group",
        "aria-label": "Timeline of a step: predicted above measured", onkeydown: walker(rows.flat(), status) },
    html("div", { class: "rank" }, html("div", { class: "who" }), html("div", { class: "sides" }, axis(length, marks))),
    ...ranks.map((rank, i) => rankOf(rank, rows[i])));
    show(element, summary(timeline), all, legend(), status, remarks(timeline));
}

let drawn = "";

// Drawn anew only when it is another one, so that it stays under the pointer.
export function showTimeline(element, timeline) {
    const key = timeline && JSON.stringify([timeline.job, timeline.epoch, timeline.pending, timeline.predicted_reason,
        timeline.measured_reason, timeline.measured?.step]);
    if (key === drawn)
        return;
    drawn = key;
    if (!timeline || timeline.pending || timeline.ranks.length === 0 || !(timeline.predicted || timeline.measured)) {
        const why = timeline?.pending ? "Its plan is being simulated." : timeline ? `There is nothing to draw: ${timeline.predicted_reason}.` : "";
        show(element, html("p", { class: "quiet" }, why));
        return;
    }
    draw(element, timeline);
}

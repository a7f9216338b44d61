// plan.js - the plan of the chosen job: how well it is balanced, what else was to be had, and where a
// step's time goes.
import { bytes, html, seconds, show, stageColour, svg, ticks } from "./draw.js";

const WIDTH = 640, LEFT = 70;

function bar(y, share, colour, text) {
    const width = Math.max(1, share * (WIDTH - LEFT - 150));
    return [svg("rect", { x: LEFT, y, width, height: 9, rx: 1, fill: colour }),
        svg("text", { x: LEFT + width + 6, y: y + 9, class: "strong" }, text)];
}

// Two bars for each stage: its time of a micro-batch, and its memory, each beside the largest.
function balance(plan) {
    const stages = plan.stages.slice(0, 32), height = stages.length * 30 + 4;
    const slowest = Math.max(...stages.map((stage) => stage.time_s)) || 1;
    const largest = Math.max(...stages.map((stage) => stage.memory_bytes)) || 1;
    const rows = stages.flatMap((stage, i) => [
        svg("text", { x: 0, y: i * 30 + 14 }, `stage ${i}`),
        ...bar(i * 30 + 2, stage.time_s / slowest, stageColour(i), seconds(stage.time_s)),
        ...bar(i * 30 + 14, stage.memory_bytes / largest, "var(--quiet)", bytes(stage.memory_bytes))]);
    const label = `Time and memory of ${stages.length} stages`;
    return svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label }, ...rows);
}

function facts(plan, job) {
    const middle = plan.blocks[Math.floor(plan.blocks.length / 2)];
    const parts = [`pp${plan.pp}`, middle.dp > 1 ? `dp${middle.dp}` : "", middle.tp > 1 ? `tp${middle.tp}` : "",
        middle.sp > 1 ? `sp${middle.sp}` : "", middle.zero ? `zero${middle.zero}` : "",
        middle.recompute === "none" ? "" : middle.recompute, `m${plan.micro_batches}`, plan.schedule];
    const measured = job.step_time_s > 0 ? `, ${seconds(job.step_time_s)} measured` : "";
    const gap = plan.certificate ? ` The best of all plans is at most ${(100 * plan.certificate.gap).toFixed(1)} % faster.` : "";
    return html("p", {}, html("code", {}, `${plan.id} ${parts.filter(Boolean).join("·")}`),
        ` by search ${plan.search.name} in ${seconds(plan.search.wall_s)}: ${seconds(plan.predicted.step_time_s)} a step predicted${measured}, `
        + `${bytes(plan.predicted.memory_bytes_max)}, bubble ${(100 * plan.predicted.bubble).toFixed(1)} %.${gap}`);
}

function scales(points) {
    const times = points.map((point) => point.step_time_s), sizes = points.map((point) => point.memory_bytes_max);
    const most = { time: Math.max(...times) * 1.1, memory: Math.max(...sizes) * 1.1 };
    return { most, x: (size) => LEFT + size / most.memory * (WIDTH - LEFT - 30), y: (time) => 170 - time / most.time * 160 };
}

// The whole trade-off: memory to the right, time up; the chosen plan is ringed, and joined to what was measured.
function tradeOff(plan, job) {
    const own = { id: plan.id, ...plan.predicted };
    const points = [...plan.frontier.filter((other) => other.id !== plan.id), own];
    const measured = job.step_time_s > 0 ? { ...own, step_time_s: job.step_time_s } : null;
    const { most, x, y } = scales(measured ? [...points, measured] : points);
    const at = (point) => ({ cx: x(point.memory_bytes_max), cy: y(point.step_time_s) });
    const words = (point) => `${point.id}: ${seconds(point.step_time_s)}, ${bytes(point.memory_bytes_max)}`;
    const drawn = points.map((point) => svg("circle", { ...at(point), r: 4, class: "dot" }, svg("title", {}, words(point))));
    if (measured)
        drawn.push(svg("line", { x1: at(own).cx, y1: at(own).cy, x2: at(measured).cx, y2: at(measured).cy, class: "mark" }),
            svg("circle", { ...at(measured), r: 3, class: "ring" }, svg("title", {}, `measured: ${seconds(job.step_time_s)}`)));
    const across = ticks(0, most.memory, 5, 2).map((size) => svg("text", { x: x(size), y: 186, "text-anchor": "middle" }, bytes(size)));
    const up = ticks(0, most.time, 4).map((time) => svg("text", { x: LEFT - 6, y: y(time) + 4, "text-anchor": "end" }, seconds(time)));
    return svg("svg", { viewBox: `0 0 ${WIDTH} 192`, role: "img", "aria-label": "Step time over memory of the plans that are to be had" },
        svg("line", { x1: LEFT, x2: WIDTH, y1: 170, y2: 170, class: "axis" }), ...across, ...up, ...drawn,
        svg("circle", { ...at(own), r: 8, class: "ring" }));
}

function times(job) {
    const worst = [...job.times].sort((a, b) => b.seconds - a.seconds).slice(0, 8);
    const all = job.times.reduce((sum, item) => sum + item.seconds, 0);
    const rows = worst.map((item) => html("tr", {}, html("td", {}, item.instruction), html("td", {}, item.block),
        html("td", { class: "number" }, `${(100 * item.seconds / all).toFixed(1)} %`),
        html("td", { class: "number" }, item.median_ratio > 0 ? item.median_ratio.toFixed(2) : "")));
    const heads = [["Instruction"], ["Block"], ["Of all time", 1], ["Measured / predicted", 1]];
    return html("div", { class: "scroll" }, html("table", {}, html("thead", {}, html("tr", {}, ...heads.map(([name, right]) =>
        html("th", { class: right ? "number" : "", scope: "col" }, name)))), html("tbody", {}, ...rows)));
}

export function showPlan(element, job) {
    const plan = job.plan_content;
    if (!plan) {
        show(element, html("p", { class: "quiet" }, `${job.job} has no plan yet${job.reason ? `: ${job.reason}` : "."}`));
        return;
    }
    const parts = [facts(plan, job), html("h3", {}, `Stages: balance ${plan.balance.time.toFixed(2)} in time, `
        + `${plan.balance.memory.toFixed(2)} in memory, of ${(1 - 1 / plan.pp).toFixed(2)}`), balance(plan)];
    if (plan.frontier.length > 0)
        parts.push(html("h3", {}, "Time and memory that are to be had"), tradeOff(plan, job));
    if (job.times.length > 0)
        parts.push(html("h3", {}, "Where the time goes"), times(job));
    if (job.candidates)
        parts.push(html("details", { "data-key": "candidates" }, html("summary", { "data-key": "looked-at" }, "Plans that were looked at"),
            html("pre", {}, job.candidates)));
    show(element, ...parts);
}

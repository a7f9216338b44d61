// curves.js - the loss and the speed of the chosen job over its steps, with its replans as marks.
import { count, html, seconds, show, svg, ticks } from "./draw.js";

const WIDTH = 640, HEIGHT = 170, LEFT = 52, BOTTOM = 20;

function range(values) {
    const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
    if (sorted.length === 0)
        return null;
    const low = sorted[0], high = sorted[Math.floor((sorted.length - 1) * 0.995)], room = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - room, high + room];
}

// lines: [{points: [[step, value], ...], kind, name}]; marks: [{step, text}]. Of a few values that are far off, as
// of steps behind a replan, the axis takes no notice.
function chart(title, lines, marks, print) {
    const points = lines.flatMap((line) => line.points), steps = points.map(([step]) => step);
    const span = range(points.map(([, value]) => value));
    if (!span)
        return null;
    const [low, high] = span, first = Math.min(...steps), last = Math.max(...steps, first + 1);
    const x = (step) => LEFT + (step - first) / (last - first) * (WIDTH - LEFT - 8);
    const y = (value) => 6 + (high - Math.min(high, Math.max(low, value))) / (high - low) * (HEIGHT - BOTTOM - 6);
    const path = (line) => line.points.filter(([, value]) => Number.isFinite(value))
        .map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const up = ticks(low, high, 4).flatMap((value) => [
        svg("line", { x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value), class: "axis" }),
        svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, print(value))]);
    const across = ticks(first, last, 6).filter(Number.isInteger).map((step) =>
        svg("text", { x: x(step), y: HEIGHT - 5, "text-anchor": "middle" }, step < 10000 ? String(step) : count(step)));
    const broken = marks.filter((mark) => mark.step >= first && mark.step <= last).map((mark) =>
        svg("line", { x1: x(mark.step), x2: x(mark.step), y1: 4, y2: HEIGHT - BOTTOM, class: "mark" }, svg("title", {}, mark.text)));
    const drawn = lines.map((line) => svg("path", { d: path(line), class: `line ${line.kind}` }, svg("title", {}, line.name)));
    return [html("h3", {}, title), svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title },
        ...up, ...across, ...broken, ...drawn)];
}

function speed(job) {
    const measured = job.curve.map((point) => [point.step, point.time_s]);
    const lines = [{ points: measured, kind: "", name: "measured" }];
    const predicted = job.plan_content?.predicted.step_time_s;
    if (predicted > 0 && measured.length > 0)
        lines.push({ points: [measured[0], measured.at(-1)].map(([step]) => [step, predicted]), kind: "dashed", name: "predicted" });
    return lines;
}

// An event that tells behind which step a job went on.
export function replansOf(events, job) {
    return events.filter((event) => event.job === job && Number.isFinite(event.more?.step)
        && (event.event === "job-replanned" || event.event === "job-restarted"))
        .map((event) => ({ step: event.more.step, text: event.text }));
}

export function showCurves(element, job, events) {
    if (job.curve.length === 0) {
        show(element, html("p", { class: "quiet" }, `No step of ${job.job} has been heard of by this start of the coordinator.`));
        return;
    }
    const marks = replansOf(events, job.job);
    const loss = [{ points: job.curve.map((point) => [point.step, point.loss ?? NaN]), kind: "", name: "loss" }];
    if (job.evaluations.length > 0)
        loss.push({ points: job.evaluations.map((item) => [item.step, item.loss ?? NaN]), kind: "second", name: "held-out loss" });
    const title = job.evaluations.length > 0 ? "Loss, and on held-out data" : "Loss";
    show(element, ...(chart(title, loss, marks, (value) => value.toFixed(2)) ?? []),
        ...(chart("Time of a step, and as predicted (dashed)", speed(job), marks, seconds) ?? []),
        ...(marks.length > 0 ? [html("p", { class: "quiet" }, "Dashed upright lines: the job was replanned.")] : []));
}

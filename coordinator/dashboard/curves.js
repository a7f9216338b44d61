// curves.js - the loss and the speed of the chosen job over its steps, with its replans as marks, and over them those
// of other jobs.
import { count, html, seconds, show, stageColour, svg, ticks } from "./draw.js";

const WIDTH = 640, HEIGHT = 170, LEFT = 52, BOTTOM = 20;

function range(values) {
    const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
    if (sorted.length === 0)
        return null;
    const low = sorted[0], high = sorted[Math.floor((sorted.length - 1) * 0.995)], room = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - room, high + room];
}

// lines: [{points: [[step, value], ...], kind, name, colour}]; marks: [{step, text}]. Of a few values that are far off, as
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
    const drawn = lines.map((line) => svg("path", { d: path(line), class: `line ${line.kind}`,
        style: line.colour ? { stroke: line.colour } : {} }, svg("title", {}, line.name)));
    return [html("h3", {}, title), svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title },
        ...up, ...across, ...broken, ...drawn)];
}

function lossOf(job, colour) {
    const name = `${job.job} (${job.name})`;
    const lines = [{ points: job.curve.map((point) => [point.step, point.loss ?? NaN]), kind: "", name: `loss of ${name}`, colour }];
    if (job.evaluations.length > 0)
        lines.push({ points: job.evaluations.map((item) => [item.step, item.loss ?? NaN]), kind: colour ? "dotted" : "second",
            name: `held-out loss of ${name}`, colour });
    return lines;
}

function speedOf(job, colour) {
    return { points: job.curve.map((point) => [point.step, point.time_s]), kind: "", name: `${job.job} (${job.name})`, colour };
}

function predictedOf(job) {
    const predicted = job.plan_content?.predicted.step_time_s;
    if (!(predicted > 0) || job.curve.length === 0)
        return [];
    return [{ points: [job.curve[0], job.curve.at(-1)].map(({ step }) => [step, predicted]), kind: "dashed", name: "predicted" }];
}

// Where a plan of the job began, as its curve tells; and in what words, where an event that is still at hand has them.
export function replansOf(events, job) {
    const told = events.filter((event) => event.job === job.job && Number.isFinite(event.more?.step)
        && (event.event === "job-replanned" || event.event === "job-restarted"));
    return job.curve.filter((point, i) => i > 0 && point.epoch !== job.curve[i - 1].epoch).map((point) => ({
        step: point.step - 1,
        text: told.find((event) => event.more.step === point.step - 1)?.text ?? `plan ${point.epoch} began with step ${point.step}`,
    }));
}

// Which other jobs are drawn as well: the newest that have finished a step, and those that are chosen already.
function chooser(job, others, jobs, toggle) {
    const over = new Set(others.map((other) => other.job));
    const offered = [...jobs].reverse().filter((other) => other.job !== job.job && other.step > 0)
        .filter((other, i) => i < 8 || over.has(other.job));
    if (offered.length === 0)
        return [];
    const choices = offered.map((other) => {
        const place = others.findIndex((item) => item.job === other.job);
        return html("label", {},
            html("input", { type: "checkbox", "data-key": `over ${other.job}`, checked: place >= 0, onchange: () => toggle(other.job) }),
            place >= 0 ? html("span", { class: "swatch", style: { background: stageColour(place + 1) } }) : null,
            ` ${other.job} ${other.name}`);
    });
    return [html("p", { class: "legend" }, "Over it:", ...choices)];
}

export function showCurves(element, job, others, events, jobs, toggle) {
    if (job.curve.length === 0) {
        show(element, html("p", { class: "quiet" }, `${job.job} has not finished a step yet.`));
        return;
    }
    const marks = replansOf(events, job), drawn = others.filter((other) => other.curve.length > 0);
    const colours = drawn.map((other) => stageColour(others.indexOf(other) + 1));
    const loss = [...drawn.flatMap((other, i) => lossOf(other, colours[i])), ...lossOf(job)];
    const speed = [...drawn.map((other, i) => speedOf(other, colours[i])), ...predictedOf(job), speedOf(job)];
    const title = job.evaluations.length > 0 ? "Loss, and on held-out data" : "Loss";
    show(element, ...chooser(job, others, jobs, toggle),
        ...(chart(title, loss, marks, (value) => value.toFixed(2)) ?? []),
        ...(chart("Time of a step, and as predicted (dashed)", speed, marks, seconds) ?? []),
        ...(marks.length > 0 ? [html("p", { class: "quiet" }, "Dashed upright lines: the job was replanned.")] : []));
}

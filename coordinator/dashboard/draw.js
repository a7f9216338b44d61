// draw.js - elements and numbers: what every part of the page is made of.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name === "style") // by the object model: the policy of the page refuses attributes
            Object.assign(element.style, value);
        else if (name.startsWith("on"))
            element.addEventListener(name.slice(2), value);
        else if (value !== null && value !== undefined && value !== false)
            element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
}

// An element of HTML; text among the children stays text, whatever it contains.
export function html(name, attributes = {}, ...children) {
    return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
}

// Puts new children in place of the old ones, and leaves the focus, the scrolling and what was opened as
// they were.
export function show(element, ...children) {
    const opened = [...element.querySelectorAll("details[open]")].map((part) => part.dataset.key);
    const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const scrolled = [...element.querySelectorAll("[data-scroll]")].map((part) => part.scrollTop);
    element.replaceChildren(...children);
    for (const part of element.querySelectorAll("details"))
        part.open = opened.includes(part.dataset.key);
    if (key)
        element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
    element.querySelectorAll("[data-scroll]").forEach((part, i) => { part.scrollTop = scrolled[i] ?? 0; });
}

function rounded(value, digits = 3) {
    if (value === 0)
        return "0";
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
    return value.toFixed(Math.min(places, 6));
}

export function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; value >= 1024 && unit + 1 < units.length; unit++)
        value /= 1024;
    return `${rounded(value)} ${units[unit]}`;
}

export function seconds(value) {
    if (value >= 1)
        return `${rounded(value)} s`;
    return value >= 1e-3 ? `${rounded(value * 1e3)} ms` : `${rounded(value * 1e6)} µs`;
}

export function count(value) {
    const units = ["", "k", "M", "G", "T"];
    let unit = 0;
    for (; Math.abs(value) >= 1000 && unit + 1 < units.length; unit++)
        value /= 1000;
    return rounded(value) + units[unit];
}

export function duration(value) {
    const whole = Math.round(value), days = Math.floor(whole / 86400);
    const hours = Math.floor(whole / 3600) % 24, minutes = Math.floor(whole / 60) % 60;
    if (days)
        return `${days}d${String(hours).padStart(2, "0")}h`;
    if (hours)
        return `${hours}h${String(minutes).padStart(2, "0")}m`;
    return minutes ? `${minutes}m${String(whole % 60).padStart(2, "0")}s` : `${whole}s`;
}

// Round numbers over a range, about `parts` of them; round for people who count in bytes where base is 2.
export function ticks(low, high, parts, base = 10) {
    const span = high - low || Math.abs(high) || 1;
    const unit = base ** Math.floor(Math.log(span / parts) / Math.log(base)), times = span / parts / unit;
    const step = unit * (base === 2 ? 2 : times >= 5 ? 10 : times >= 2 ? 5 : times >= 1 ? 2 : 1);
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step)
        found.push(Math.abs(value) < step * 1e-9 ? 0 : value);
    return found;
}

export function stageColour(stage) {
    return `var(--stage-${stage % 8})`;
}

// events.js - what happened, the newest first.
import { html, show } from "./draw.js";

const BAD = /lost|failed|stalled|dead|suspect|cannot|damaged|refused|slow$/;
const GOOD = /replanned|recovered|done|joined|listed/;
const SHOWN = 200;

function line(event) {
    const at = new Date(event.unix_s * 1000);
    const tone = BAD.test(event.event) ? "kind bad" : GOOD.test(event.event) ? "kind good" : "kind";
    return html("li", {},
        html("time", { datetime: at.toISOString(), title: at.toLocaleString() }, at.toTimeString().slice(0, 8)),
        html("span", { class: tone }, event.event), html("span", { class: "text" }, event.text));
}

export function showEvents(element, events) {
    if (events.length === 0) {
        show(element, html("p", { class: "quiet" }, "Nothing has happened yet."));
        return;
    }
    const newest = events.slice(-SHOWN).reverse();
    show(element, html("div", { class: "events", "data-scroll": "", tabindex: "0", "data-key": "events" },
        html("ol", {}, ...newest.map(line))));
}

// events.js - what happened, the newest first; and events as they come, by fetch: an EventSource cannot show a token.
import { html, show } from "./draw.js";

const BAD = /lost|failed|stalled|dead|suspect|cannot|damaged|refused|slow$/;
const GOOD = /replanned|recovered|done|joined|listed/;
const SHOWN = 200;
const SILENCE_MS = 30000; // the coordinator says something every ten seconds, if only that it is there

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

// The events of whole records; what is left of the text is the beginning of the next one.
function parse(text) {
    const records = text.split("\n\n"), rest = records.pop();
    const data = records.map((record) => record.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n"));
    return { events: data.filter(Boolean).map((item) => JSON.parse(item)), rest };
}

// Hands over what comes behind a revision, some events at a time, until the stream ends, breaks, is silent for too
// long or is stopped. begin is called when it is there.
export async function follow(revision, headers, stop, begin, take) {
    let timer = 0, text = "";
    const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(() => stop.abort(), SILENCE_MS);
    };
    try {
        wait();
        const answer = await fetch(`api/v1/events/stream?after=${revision}`, { headers, signal: stop.signal });
        if (!answer.ok)
            return;
        begin();
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
            wait();
            const { events, rest } = parse(text + part.value);
            text = rest;
            take(events);
        }
    } catch {
        // whoever follows asks for what it missed
    } finally {
        clearTimeout(timer);
        stop.abort();
    }
}

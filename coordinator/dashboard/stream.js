// stream.js - events as they come, by fetch: an EventSource cannot show a token.

const SILENCE_MS = 30000; // the coordinator says something every ten seconds, if only that it is there

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

/** Bytes in, events out, each once: also when the connection is lost in between. */

import { describe, expect, it, vi } from "vitest";

import { type Frame, SseReader } from "../src/api/sse";
import { type Connection, LiveStream } from "../src/api/stream";
import { app } from "../src/state/app.svelte";
import { list } from "../src/state/list.svelte";
import { live } from "../src/state/live.svelte";
import { toasts } from "../src/state/toasts.svelte";
import { summary } from "./samples";

const TOLD = 'id: a:1\nevent: turn.state\ndata: {"state":"streaming"}\n\n: still here\n\nid: a:2\r\nevent: text.delta\r\ndata: {"text":"h\\u00e9"}\r\n\r\n';

function read(pieces: string[]): Frame[] {
  const reader = new SseReader();
  return pieces.flatMap((piece) => [...reader.feed(piece)]);
}

describe("the reader", () => {
  const whole = read([TOLD]);

  it("reads events, ids and nothing else", () => {
    expect(whole).toEqual([
      { id: "a:1", event: "turn.state", data: '{"state":"streaming"}' },
      { id: "a:2", event: "text.delta", data: '{"text":"h\\u00e9"}' },
    ]);
  });

  it("gives the same wherever the text is cut (E2)", () => {
    for (let at = 0; at <= TOLD.length; at++) expect(read([TOLD.slice(0, at), TOLD.slice(at)])).toEqual(whole);
    expect(read([...TOLD])).toEqual(whole);
  });

  it("joins several data lines", () => {
    expect(read(["data: one\ndata: two\n\n"])).toEqual([{ id: null, event: "message", data: "one\ntwo" }]);
  });
});

/** A server that plays one answer after the other, and keeps what it was asked. */
function server(answers: (string | number)[]): { fetch: typeof fetch; asked: (string | null)[] } {
  const asked: (string | null)[] = [];
  const play = (_: unknown, init?: RequestInit): Promise<Response> => {
    asked.push(new Headers(init?.headers).get("Last-Event-ID"));
    const answer = answers.shift();
    if (answer === undefined) return new Promise(() => {});
    if (answer === 0) return Promise.reject(new TypeError("no connection"));
    return Promise.resolve(typeof answer === "number" ? new Response("", { status: answer }) : new Response(answer));
  };
  return { fetch: play as typeof fetch, asked };
}

async function followed(answers: (string | number)[]): Promise<{ events: string[]; asked: (string | null)[]; pauses: number[]; connections: Connection[] }> {
  const { fetch, asked } = server([...answers, 401]);
  const events: string[] = [];
  const pauses: number[] = [];
  const connections: Connection[] = [];
  await new LiveStream({
    address: "/api/events",
    fetch,
    onEvent: (event) => events.push(event.type),
    onConnection: (connection) => connections.push(connection),
    pause: (milliseconds) => Promise.resolve(void pauses.push(milliseconds)),
  }).run();
  return { events, asked, pauses, connections };
}

describe("the stream", () => {
  it("resumes after the last event it saw (E2)", async () => {
    const { asked, events } = await followed([TOLD, "id: a:3\nevent: text.end\ndata: {}\n\n"]);
    expect(asked).toEqual([null, "a:2", "a:3"]);
    expect(events).toEqual(["turn.state", "text.delta", "text.end"]);
  });

  it("waits longer each time nothing is heard, and no longer than five seconds", async () => {
    const { pauses } = await followed([0, 503, 0, 0, 0, 0, 0, TOLD, 0]);
    expect(pauses).toEqual([300, 600, 1200, 2400, 4800, 5000, 5000, 300, 600]);
  });

  it("tells a missing sign-in and a missing conversation from a lost connection", async () => {
    expect((await followed([0])).connections.at(-1)).toBe("signed-out");
    expect((await followed([404])).connections.at(-1)).toBe("gone");
  });

  it("lets go while nobody looks, and goes on after the last event it saw", async () => {
    const { fetch, asked } = server([TOLD, "id: a:3\nevent: text.end\ndata: {}\n\n", 401]);
    const events: string[] = [];
    const stream: LiveStream = new LiveStream({
      address: "/api/events",
      fetch,
      onEvent: (event) => {
        events.push(event.type);
        if (event.type === "text.delta") stream.rest();
      },
      onConnection: () => {},
      pause: () => Promise.resolve(),
    });
    const over = stream.run();
    await vi.waitFor(() => expect(events).toHaveLength(2));
    expect(asked).toHaveLength(1);
    stream.wakeUp();
    await over;
    expect(asked).toEqual([null, "a:2", "a:3"]);
    expect(events).toEqual(["turn.state", "text.delta", "text.end"]);
  });

  it("does not wait for ever for an answer that does not begin", async () => {
    vi.useFakeTimers();
    const connections: Connection[] = [];
    const hangs = (_: unknown, init?: RequestInit): Promise<Response> =>
      new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
    const stream = new LiveStream({ address: "/api/events", fetch: hangs as typeof fetch, onEvent: () => {}, onConnection: (one) => connections.push(one) });
    void stream.run();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(connections).toEqual(["waiting"]);
    stream.stop();
    vi.useRealTimers();
  });

  it("goes on after an event that makes no sense, and says so", async () => {
    const told = vi.spyOn(console, "error").mockImplementation(() => {});
    const { events } = await followed(["event: odd\ndata: {not json\n\nevent: text.end\ndata: {}\n\n"]);
    expect(events).toEqual(["text.end"]);
    expect(told).toHaveBeenCalledOnce();
    told.mockRestore();
  });
});

describe("the stream of a tab that nobody sees", () => {
  it("does not begin anew where there is no such conversation any more", async () => {
    vi.useFakeTimers();
    const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.resolve(new Response(null, { status: 404 })));
    const seen = vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
    live.watchVisibility();
    live.open("gone", () => {}, () => {}, () => {});
    await vi.waitFor(() => expect(live.connection).toBe("gone"));
    document.dispatchEvent(new Event("visibilitychange"));
    await vi.advanceTimersByTimeAsync(120_000);
    expect(live.connection).toBe("gone");
    for (const spy of [fetched, seen]) spy.mockRestore();
    vi.useRealTimers();
  });
});

describe("the list", () => {
  it("takes no more rows of what it showed before", async () => {
    const answers: ((page: object) => void)[] = [];
    const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(
      () => new Promise((resolve) => answers.push((page) => resolve(Response.json({ items: [], next: null, tags: [], ...page })))),
    );
    const search = async (words: string): Promise<void> => ((list.search = words), list.load());
    const first = search("one");
    answers[0]?.({ next: "later" });
    await first;
    const more = list.loadMore();
    const second = search("two");
    answers[2]?.({});
    await second;
    answers[1]?.({ next: "much later" });
    await more;
    expect(list.more).toBe(false);
    fetched.mockRestore();
  });

  it("does not fall back behind what it was told while it was asked for", async () => {
    const fetched = vi.spyOn(globalThis, "fetch");
    const before = summary(null);
    list.search = "two";
    list.put(before);
    fetched.mockImplementation(async () => {
      list.put({ ...before, archived: true });
      return Response.json({ items: [before], next: null, tags: [] });
    });
    await list.load();
    expect(list.known.get(before.id)?.archived).toBe(true);
    list.drop(before.id);
    fetched.mockRestore();
  });
});

describe("a conversation whose first message is refused", () => {
  it("is shown in the list where it cannot be deleted either", async () => {
    vi.useFakeTimers(); // nothing of it comes later
    const answers = [{ id: "made" }, null, { messages: [] }, null];
    const fetched = vi.spyOn(globalThis, "fetch").mockImplementation((address) => {
      if (!String(address).includes("/conversations")) return new Promise(() => {});
      const answer = answers.shift();
      return answer ? Promise.resolve(Response.json(answer)) : Promise.reject(new Error("away"));
    });
    expect(await app.say([{ type: "text", text: "hello" }], false)).toBe("made");
    expect(answers).toEqual([]);
    expect(list.hidden.has("made")).toBe(false);
    expect(toasts.splice(0)).toHaveLength(1);
    list.drop("made");
    app.current = null;
    fetched.mockRestore();
    vi.useRealTimers();
  });
});

describe("a conversation that is gone while it is shown", () => {
  it.each([
    ["share", "none"],
    ["settings", "settings"],
  ] as const)("with the dialog %s open leaves %s (V1)", async (open, left) => {
    const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.resolve(new Response(null, { status: 404 })));
    app.show("removed");
    app.current!.loaded = true;
    app.open(open);
    await vi.waitFor(() => expect(app.current).toBe(null));
    expect(app.dialog).toBe(left);
    app.dialog = "none";
    toasts.splice(0);
    fetched.mockRestore();
  });
});

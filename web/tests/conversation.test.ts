/** A conversation as the stream tells it: snapshots, turns, questions, branches. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { EventOf, LiveEvent } from "../src/api/events";
import type { Message } from "../src/api/types";
import { ConversationView } from "../src/state/conversation.svelte";
import { call, event, events, message as sample, question, summary, text as said, tree, USAGE } from "./samples";

const message = (id: string, parent: string | null, role: Message["role"], text: string, more: Partial<Message> = {}): Message =>
  sample(id, parent, role, { parts: [said(text)], finish: role === "assistant" ? "stop" : null, ...more });
const TREE = tree("a1", [message("q1", null, "user", "hello"), message("a1", "q1", "assistant", "hi")]);

function shown(view: ConversationView): string[] {
  vi.runAllTimers(); // hidden pages have no frames
  return view.path.map((id) => view.messages.get(id)?.parts.map((part) => ("text" in part ? part.text : part.type)).join("") ?? "?");
}

function told(...all: LiveEvent[]): ConversationView {
  const view = new ConversationView("conv_1");
  view.take(TREE);
  for (const each of all) view.take(each);
  return view;
}

const TURN = events(
  { type: "message.added", message: message("q2", "a1", "user", "and?"), turn: "turn_2" },
  { type: "turn.start", conversation: "conv_1", message: "q2", turn: "turn_2" },
  { type: "step.start", step: 1, attempt: 1, message: "a2", parent: "q2", model: "m", turn: "turn_2" },
  { type: "text.delta", text: "so ", turn: "turn_2" },
);
const ASKED = events(
  { type: "call.input.start", call: "c", tool: "rm", turn: "turn_2" },
  { type: "call.input.end", call: "c", tool: "rm", arguments: {}, turn: "turn_2" },
  { type: "call.asked", call: "c", question: "ask_1", kind: "approve", tool: "rm", arguments: {}, text: "", whole: question("ask_1", "c"), turn: "turn_2" },
);
const END = event({ type: "turn.end", state: "completed", usage: USAGE, turn: "turn_2" }) as EventOf<"turn.end">;
const saying = (text: string): LiveEvent => event({ type: "text.delta", text, turn: "turn_2" });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a conversation", () => {
  it("shows what a turn says while it says it, below what was said", () => {
    const view = told(...TURN, saying("what"));
    expect(shown(view)).toEqual(["hello", "hi", "and?", "so what"]);
    expect(view.running).toMatchObject({ id: "turn_2", state: "preparing" });
  });

  it("is replaced by a snapshot, and goes on from it (E2)", () => {
    const view = told(...TURN, ...ASKED);
    const draft = message("a2", "q2", "assistant", "so far", { finish: null, turn: "turn_2" });
    view.take({
      ...TREE,
      conversation: summary("a2"),
      messages: [...TREE.messages, message("q2", "a1", "user", "and?"), draft],
      turns: [{ id: "turn_2", message: "q2", state: "streaming", live: true, started: 0, retrying: "overloaded", arriving: null }],
    });
    expect(view.running?.retry?.reason).toBe("overloaded");
    view.take(saying(", so good"));
    expect(view.running?.retry).toBeNull();
    expect(shown(view)).toEqual(["hello", "hi", "and?", "so far, so good"]);
    expect(view.questions.size).toBe(0);
  });

  it("waits in line until somebody runs the turn (N5)", () => {
    const view = told();
    view.take({
      ...TREE,
      conversation: summary("q2"),
      messages: [...TREE.messages, message("q2", "a1", "user", "and?")],
      turns: [{ id: "turn_2", message: "q2", state: "queued", live: true, started: 7, retrying: null, arriving: null }],
    });
    expect(view.running).toMatchObject({ id: "turn_2", state: "queued" });
    view.take(event({ type: "turn.start", conversation: "conv_1", message: "q2", turn: "turn_2" }));
    expect(view.running).toMatchObject({ state: "preparing", live: true, started: 7 });
  });

  it("has a question until somebody answers it, here or elsewhere (P6)", () => {
    const view = told(...TURN, ...ASKED);
    expect(view.questionsOf("c").map(({ id }) => id)).toEqual(["ask_1"]);
    view.take(event({ type: "call.answered", call: "c", question: "ask_1", verdict: "allow", turn: "turn_2" }));
    expect(view.questionsOf("c")).toEqual([]);
  });

  it("has no questions left of a turn that is over", () => {
    const view = told(...TURN, ...ASKED, END);
    expect(view.questions.size).toBe(0);
    expect(view.running).toBeNull();
  });

  it("shows the newest version of an answer, and another when the leaf is moved (T10)", () => {
    const view = told(
      ...events({ type: "step.start", step: 1, attempt: 1, message: "a1b", parent: "q1", model: "m", turn: "turn_3" }, { type: "text.delta", text: "hey", turn: "turn_3" }),
    );
    view.take({ type: "conversation.changed", ...summary("a1b") });
    expect(shown(view)).toEqual(["hello", "hey"]);
    expect(view.versions("a1b")).toEqual(["a1", "a1b"]);
    view.take({ type: "conversation.changed", ...summary("a1") });
    expect(shown(view)).toEqual(["hello", "hi"]);
  });

  it("is not busy with a turn of another branch (T4)", () => {
    const view = told(...TURN);
    vi.runAllTimers();
    view.take(event({ type: "message.added", message: message("q1b", null, "user", "other"), turn: "turn_3" }));
    view.take({ type: "conversation.changed", ...summary("q1b") });
    expect(shown(view)).toEqual(["other"]);
    expect(view.running).toBeNull();
  });

  it("does not touch messages that are over while another is written", () => {
    const view = told(...TURN);
    vi.runAllTimers();
    const before = view.messages.get("a1");
    view.take(saying("more"));
    vi.runAllTimers();
    expect(view.messages.get("a1")).toBe(before);
  });

  it("fetches everything anew where the list knows of an end that the stream did not tell", async () => {
    const now = { ...TREE, messages: [...TREE.messages, message("q2", "a1", "user", "and?"), message("a2", "q2", "assistant", "so it ended")] };
    const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.resolve(Response.json({ ...now, conversation: summary("a2") })));
    const view = told(...TURN, { type: "conversation.changed", ...summary("a2") });
    expect(view.running).not.toBeNull();
    await vi.advanceTimersByTimeAsync(2000);
    expect(fetched).toHaveBeenCalledOnce();
    expect(view.running).toBeNull();
    expect(shown(view)).toEqual(["hello", "hi", "and?", "so it ended"]);
    fetched.mockRestore();
  });

  it("keeps the last progress of a call, and what it said as a log", () => {
    const view = told(...TURN, ...ASKED);
    for (const value of ["one\n", "two\n", 0.5]) view.take(event({ type: "call.progress", call: "c", value, turn: "turn_2" }));
    expect(view.progress.get("c")).toMatchObject({ last: 0.5, log: "one\ntwo\n" });
  });

  it("says that a request is tried again, until anything else is heard (R6)", () => {
    const view = told(...TURN, event({ type: "step.retry", attempt: 2, seconds: 4, reason: "overloaded", turn: "turn_2" }));
    expect(view.running?.retry).toEqual({ at: Date.now() / 1000 + 4, reason: "overloaded" });
    view.take(saying("at last"));
    expect(view.running?.retry).toBeNull();
  });

  it("knows the limit at which its last turn ended, and no other's (T7)", () => {
    const view = told(...TURN);
    expect(view.limit).toBeNull();
    view.take({ ...END, limit: "10 rounds" });
    expect(shown(view)).toHaveLength(4);
    expect(view.limit).toBe("10 rounds");
    view.take(event({ type: "message.added", message: message("q3", "a2", "user", "Go on.", { turn: "turn_3" }), turn: "turn_3" }));
    expect(view.limit).toBeNull();
  });

  it("knows after a reload that calls were skipped, if not why (T7)", () => {
    const skipped = sample("a2", "a1", "assistant", { turn: "turn_2", finish: "tool_calls", parts: [call("c", { state: "skipped" })] });
    const view = new ConversationView("conv_1");
    view.take({ ...tree("a3", [...TREE.messages, skipped, message("a3", "a2", "assistant", "so", { turn: "turn_2" })]) });
    expect(view.limit).toBe("");
  });

  it("takes no harm from events that a newer server tells", () => {
    const view = told(...TURN, { type: "of.tomorrow", turn: "turn_2" } as unknown as LiveEvent, saying("what"));
    expect(shown(view).at(-1)).toBe("so what");
  });

  it("has a line for each report, and the pieces of one output as they came (C6)", () => {
    const report = (call: string, value: string): LiveEvent => event({ type: "call.progress", call, value, turn: "turn_2" });
    const view = told(...TURN, report("a", "step 1"), report("a", "step 2"), report("b", "ab\nc"), report("b", "d"));
    expect(view.progress.get("a")?.log).toBe("step 1\nstep 2");
    expect(view.progress.get("b")?.log).toBe("ab\ncd");
  });

  it("says that a reply is written anew where the server lost what was read of it", () => {
    const view = told(...TURN);
    shown(view);
    const live = { id: "turn_2", message: "q2", state: "preparing", live: true, started: 0, retrying: null, arriving: null };
    view.take({ ...TREE, messages: [...TREE.messages, message("q2", "a1", "user", "and?")], turns: [live] });
    expect(view.notes.map(({ text }) => text).join()).toContain("writes it again");
  });
});

describe("files that are being made (M3)", () => {
  it("are known to who comes late", () => {
    const view = told(...TURN);
    const arriving = { type: "file.partial", file: file("b1", "audio/mpeg"), index: 0, offset: 5, seq: 9 } as const;
    const live = { id: "turn_2", message: "q2", state: "streaming", live: true, started: 0, retrying: null, arriving };
    view.take({ ...TREE, messages: [...TREE.messages, message("q2", "a1", "user", "and?")], turns: [live] });
    expect(view.arriving.get("turn_2")).toEqual([{ index: 0, file: arriving.file, bytes: 15 }]);
  });

  const file = (blob: string, media_type = "image/png", size = 10) =>
    ({ type: "file", media_type, blob, url: null, name: "a", size, made_by: null, signature: null }) as const;
  const partial = (blob: string, index = 0, offset: number | null = null): LiveEvent =>
    event({ type: "file.partial", file: file(blob, offset === null ? "image/png" : "audio/mpeg"), index, offset, turn: "turn_2" });
  const arriving = (view: ConversationView): unknown[] => (view.arriving.get("turn_2") ?? []).map((one) => [one.index, one.file.blob, one.bytes]);

  it("are shown as they look by now, each in its place, and make way for the whole", () => {
    const view = told(...TURN, partial("a1"), partial("b1", 1), partial("a2"));
    expect(arriving(view)).toEqual([[0, "a2", null], [1, "b1", null]]);
    view.take(event({ type: "file.added", file: file("a"), turn: "turn_2" }));
    expect(arriving(view)).toEqual([[1, "b1", null]]);
    vi.runAllTimers();
    expect(view.messages.get("a2")?.parts.at(-1)).toMatchObject({ type: "file", blob: "a", made_by: "m" });
  });

  it("tell how much of a sound is here", () => {
    expect(arriving(told(...TURN, partial("a", 0, 0), partial("b", 0, 10)))).toEqual([[0, "b", 20]]);
  });

  it("are gone where the request is made again or the turn is over", () => {
    const again = event({ type: "step.retry", seconds: 1, reason: "busy", attempt: 1, turn: "turn_2" });
    expect(arriving(told(...TURN, partial("a"), again))).toEqual([]);
    expect(arriving(told(...TURN, partial("a"), END))).toEqual([]);
  });
});

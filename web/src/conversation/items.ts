/** Turn the messages of an answer into what is shown: texts, groups of calls, and how it ended. */

import type { CallPart, FilePart, Message, Part } from "../api/types";
import { t } from "../i18n/words.svelte";
import { endingOf } from "./endings";

export type Item =
  | { kind: "part"; key: string; part: Exclude<Part, CallPart | FilePart>; message: Message; growing: boolean }
  | { kind: "calls"; key: string; calls: { call: CallPart; turn: string | null }[] }
  | { kind: "files"; key: string; files: FilePart[]; message: Message }
  | { kind: "end"; key: string; words: string; stopped: boolean; finish: string | null };

const OURS = ["length", "compaction", "typed_output"]; // plugins whose messages are only for the model

/** Their messages to the model are not part of the answer. */
const asksToGoOn = (message: Message | undefined): boolean =>
  message?.role === "user" && OURS.includes(message.author ?? "") && message.parts.every(({ type }) => type === "text");

/** `live`: the last part of an unfinished reply can still grow. */
export function itemsOf(messages: Message[], live: boolean): Item[] {
  const items: Item[] = [];
  messages.forEach((message, place) => {
    if (asksToGoOn(message)) return;
    const goesOn = asksToGoOn(messages[place - 1]);
    message.parts.forEach((part, at) => {
      const growing = live && !message.finish && at === message.parts.length - 1;
      const last = items.at(-1);
      if (part.type === "call") {
        const entry = { call: part, turn: message.turn };
        if (last?.kind === "calls") last.calls.push(entry);
        else items.push({ kind: "calls", key: part.id, calls: [entry] });
      } else if (part.type === "file") {
        if (last?.kind === "files" && last.message === message) last.files.push(part);
        else items.push({ kind: "files", key: `${message.id} ${at}`, files: [part], message });
      } else if (part.type === "text" && !part.text.trim() && !part.citations.length) {
        return; // between calls, mostly
      } else if (part.type === "text" && goesOn && at === 0 && last?.kind === "part" && last.part.type === "text") {
        // The reply was cut off, possibly within a word, and continues here.
        const { text, citations } = last.part;
        last.part = { ...part, text: text + part.text, citations: [...citations, ...part.citations] };
        last.growing = growing;
      } else {
        items.push({ kind: "part", key: `${message.id} ${at}`, part, message, growing });
      }
    });
    const last = messages.slice(place + 1).every(asksToGoOn);
    const stopped = message.finish === "cancelled";
    const words = stopped ? t().stopped : endingOf(message, last && !live);
    if (words) items.push({ kind: "end", key: `${message.id} end`, words, stopped, finish: message.finish });
  });
  return items;
}

/** The files of an answer, in order. */
export const filesOf = (messages: Message[]): FilePart[] =>
  messages.flatMap(({ parts }) => parts.filter((part): part is FilePart => part.type === "file"));

/** The text of an answer, as it is copied. */
export function wordsOf(messages: Message[]): string {
  return itemsOf(messages, false)
    .flatMap((item) => (item.kind === "part" && item.part.type === "text" ? item.part.text.trim() : []))
    .join("\n\n");
}

/** Requests to the server. A refusal is thrown as a Problem, whose message is meant for the user. */

import { withBase } from "../basePath";
import type { Sentence } from "../i18n/format";
import { t } from "../i18n/words.svelte";
import type { Said } from "./types";

export class Problem extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
    this.name = "Problem";
  }
}

type Listener = () => void;
export let signedOut: Listener = () => {};

/** Called when a request finds that the user is not signed in. */
export function onSignedOut(listener: Listener): void {
  signedOut = listener;
}

export async function problemOf(response: Response): Promise<Problem> {
  let detail: Sentence = response.statusText || `HTTP ${response.status}`;
  try {
    const body = (await response.json()) as Partial<Said> & { detail?: unknown };
    if (typeof body.detail === "string") detail = { ...body, text: body.detail } as Said;
  } catch {
    // The body is not JSON: it comes from a proxy or a server that crashed. Use the status line instead.
  }
  return new Problem(response.status, t().server(detail));
}

/** The server can disconnect before its response begins or in the middle of it. */
async function reached<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, t().unreachable);
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await reached(fetch(withBase(path), { credentials: "same-origin", ...init }));
  if (response.status === 401) signedOut();
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function json<T>(path: string, init: RequestInit): Promise<T> {
  const response = await send(path, init);
  if (response.status === 204) return undefined as T;
  return reached(response.json() as Promise<T>);
}

const withBody = (method: string, body: unknown): RequestInit => ({
  method,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body ?? {}),
});

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> =>
  json<T>(path, signal ? { signal } : {});
export const post = <T>(path: string, body?: unknown): Promise<T> => json<T>(path, withBody("POST", body));
export const patch = <T>(path: string, body: unknown): Promise<T> => json<T>(path, withBody("PATCH", body));
export const put = <T>(path: string, body: unknown): Promise<T> => json<T>(path, withBody("PUT", body));
/** Complete the request even if the web UI is closed meanwhile. */
export const remove = (path: string): Promise<void> => json<void>(path, { ...withBody("DELETE", {}), keepalive: true });

export async function text(path: string): Promise<string> {
  return reached((await send(path, {})).text());
}

export const upload = <T>(path: string, body: Blob): Promise<T> =>
  json<T>(path, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body });

/** A path with its values escaped: at`/api/turns/${id}` */
export function at(strings: TemplateStringsArray, ...values: string[]): string {
  return strings.reduce((path, piece, place) => path + encodeURIComponent(values[place - 1] ?? "") + piece);
}

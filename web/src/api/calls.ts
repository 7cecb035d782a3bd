/** Every server endpoint that the web UI calls, by name. */

import { at, get, patch, post, put, remove, text, upload } from "./client";
import { withBase } from "../basePath";
import type {
  Begun,
  Cancelled,
  ContextUse,
  CoveredCalls,
  ConversationChange,
  Decision,
  DiffView,
  Done,
  EvaluatedCase,
  EvaluationLine,
  EvaluationView,
  FilledPrompt,
  GrantList,
  GroupList,
  ModelList,
  NewTurn,
  Page,
  PromptList,
  PartialCall,
  QuestionList,
  QueuedTurn,
  QueueView,
  RatingView,
  Rerun,
  RerunCall,
  Result,
  RevertView,
  RuleDecision,
  RuleList,
  RuleView,
  ServerPromptList,
  ServerPromptView,
  SignedOut,
  TraceView,
  TurnInfo,
  WaysToSignIn,
} from "./generated";
import type { ConversationSettings, FilePart, Grant, Group, Me, Prompt, Question, Rule, Summary, TextPart, Tree, UsageReport } from "./types";

export type Said = (Pick<TextPart, "type" | "text"> | FilePart)[];

export const me = (): Promise<Me> => get("/api/me");
/** Includes the URL at which the provider ends its session, if the user signed in through one. */
export const logout = (): Promise<SignedOut | undefined> => post("/api/logout");
export const waysToSignIn = (): Promise<WaysToSignIn> => get("/api/login");
export const login = (password: string): Promise<unknown> => post("/api/login", { password });

export type ListFilter = { archived?: boolean; pinned?: boolean; tag?: string };

export function conversations(search: string, before: string | null, filter: ListFilter = {}, signal?: AbortSignal): Promise<Page> {
  const query = new URLSearchParams({ limit: "60" });
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  if (search) query.set("search", search);
  if (before) query.set("before", before);
  return get(`/api/conversations?${query}`, signal);
}
export const create = (settings: ConversationSettings): Promise<Summary> => post("/api/conversations", { settings });
export const change = (id: string, changes: ConversationChange): Promise<Summary> =>
  patch(at`/api/conversations/${id}`, changes);
export const conversation = (id: string): Promise<Summary> => get(at`/api/conversations/${id}`);
export const drop = (id: string): Promise<void> => remove(at`/api/conversations/${id}`);
export const fork = (id: string, message: string, ownFolder = false): Promise<Summary> =>
  post(at`/api/conversations/${id}/fork`, { message, own_folder: ownFolder });
export const tree = (id: string): Promise<Tree> => get(at`/api/conversations/${id}/tree`);
export const exportAddress = (id: string, format: "json" | "markdown"): string =>
  withBase(`${at`/api/conversations/${id}/export`}?format=${format}`);
export const bring = (exported: unknown): Promise<Summary> => post("/api/import", exported);

export const send = (id: string, parts: Said, options: NewTurn = {}): Promise<Begun> =>
  post(at`/api/conversations/${id}/turns`, { parts, ...options });
export const edit = (message: string, parts: Said): Promise<Begun> => post(at`/api/messages/${message}/edit`, { parts });
export const rerun = (message: string, how: Pick<Rerun, "model" | "parallel"> = {}): Promise<Begun> =>
  post(at`/api/messages/${message}/rerun`, how);
/** Create a new version of the answer from this call on. Without arguments and result, the call runs again
 * unchanged. */
export const rerunCall = (call: string, change: Pick<RerunCall, "arguments" | "result" | "revert_files">): Promise<Begun> =>
  post(at`/api/calls/${call}/rerun`, change);
export const cancel = (turn: string): Promise<Cancelled> => post(at`/api/turns/${turn}/cancel`, {});
export const steer = (turn: string, parts: Said): Promise<Done> => post(at`/api/turns/${turn}/steer`, { parts });

export const changeQueued = (turn: string, parts: Said): Promise<QueuedTurn> => patch(at`/api/turns/${turn}`, { parts });
export const reorder = (id: string, turns: string[]): Promise<QueueView> => put(at`/api/conversations/${id}/queue`, { turns });
export const withdraw = (turn: string, message: number): Promise<void> =>
  remove(at`/api/turns/${turn}/steering/${String(message)}`);
export const turn = (id: string): Promise<TurnInfo> => get(at`/api/turns/${id}`);
export const turnDiff = (turn: string): Promise<DiffView> => get(at`/api/turns/${turn}/diff`);
export const conversationDiff = (id: string): Promise<DiffView> => get(at`/api/conversations/${id}/diff`);
/** What the calls of one reply did. A reply is one step of its turn. */
export const stepDiff = (message: string): Promise<DiffView> => get(at`/api/messages/${message}/diff`);
/** Without `paths`, all files. */
export const revertFiles = (turn: string, force: boolean, paths: string[] = []): Promise<RevertView> =>
  post(at`/api/turns/${turn}/revert`, { files_only: true, force, paths });
export const redo = (id: string): Promise<RevertView> => post(at`/api/conversations/${id}/redo`, {});
export const goOn = (turn: string): Promise<TurnInfo> => post(at`/api/turns/${turn}/continue`, {});

export const deliver = (call: string, result: Result): Promise<Done> =>
  post(at`/api/calls/${call}/result`, result);
export const output = (call: string): Promise<string> => text(at`/api/calls/${call}/output`);
export const answer = (question: string, decision: Decision): Promise<Question> =>
  post(at`/api/questions/${question}/answer`, decision);
export const chooseHunks = (question: string, hunks: { hunk: number; text: string | null }[]): Promise<PartialCall> =>
  post(at`/api/questions/${question}/hunks`, { hunks });
export const question = (id: string): Promise<Question> => get(at`/api/questions/${id}`);
export const questionsAfter = async (id: string | null): Promise<Question[]> =>
  (await get<QuestionList>(`/api/questions?${new URLSearchParams(id === null ? { limit: "30" } : { limit: "30", after: id })}`)).items;
export async function questions(conversation: string): Promise<Question[]> {
  return (await get<QuestionList>(at`/api/questions?conversation=${conversation}`)).items;
}

/** A short description of a new conversation. */
export async function tools(conversation: string | null, brief: boolean): Promise<Group[]> {
  const query = conversation ? at`?conversation=${conversation}` : brief ? "?brief=true" : "";
  return (await get<GroupList>(`/api/tools${query}`)).groups;
}
export const models = (ready: boolean): Promise<ModelList> => get(ready ? "/api/models?ready=true" : "/api/models");
export const modelsOf = (provider: string): Promise<ModelList> => get(at`/api/models/${provider}`);
export const rules = async (): Promise<RuleView[]> => (await get<RuleList>("/api/rules")).items;
export const decisionOf = (permission: string, pattern: string): Promise<RuleDecision> =>
  get(at`/api/rules/decision?permission=${permission}&pattern=${pattern}`);
/** Which calls of the user's recent conversations these rules would have covered. */
export const coveredBy = (rules: Rule[], question?: string): Promise<CoveredCalls> => {
  const wanted = rules.map(({ permission, pattern }) => ["rule", `${permission}:${pattern}`]);
  return get(`/api/rules/covered?${new URLSearchParams(question ? [...wanted, ["question", question]] : wanted)}`);
};
export const grants = async (): Promise<Grant[]> => (await get<GrantList>("/api/grants")).items;
export const giveRule = (rule: Pick<Rule, "permission" | "pattern">, action: "allow" | "deny", scope: "always" | "hour"): Promise<Grant> =>
  post("/api/grants", { permission: rule.permission, pattern: rule.pattern, action, scope });
export const revoke = (grant: string): Promise<void> => remove(at`/api/grants/${grant}`);
/** What filled the model's context in the last request of a turn. */
export const context = (turn: string): Promise<ContextUse> => get(at`/api/turns/${turn}/context`);
export const trace = (turn: string): Promise<TraceView> => get(at`/api/turns/${turn}/trace`);
/** The user's ratings of answers, and the evaluation runs. */
export const ratings = (conversation: string): Promise<RatingView[]> => get(at`/api/conversations/${conversation}/ratings`);
export const rate = (turn: string, value: RatingView["value"], note: string): Promise<RatingView> =>
  put(at`/api/turns/${turn}/rating`, { value, note });
export const removeRating = (turn: string): Promise<void> => remove(at`/api/turns/${turn}/rating`);
export const evaluations = (): Promise<EvaluationLine[]> => get("/api/evaluations");
export const evaluation = (name: string): Promise<EvaluationView> => get(at`/api/evaluations/${name}`);
export const evaluatedCase = (name: string, id: string): Promise<EvaluatedCase> => get(at`/api/evaluations/${name}/cases/${id}`);
export const usage = (): Promise<UsageReport> => get("/api/usage?by=day,model");

export const prompts = async (): Promise<Prompt[]> => (await get<PromptList>("/api/prompts")).items;
export const keepPrompt = (name: string, words: string): Promise<Prompt> =>
  put(at`/api/prompts/${name}`, { text: words });
export const serverPrompts = async (): Promise<ServerPromptView[]> =>
  (await get<ServerPromptList>("/api/server-prompts")).items;
export const fillPrompt = (server: string, name: string, values: Record<string, string>): Promise<FilledPrompt> =>
  post(at`/api/server-prompts/${server}/${name}`, { arguments: values });
export const dropPrompt = (name: string): Promise<void> => remove(at`/api/prompts/${name}`);

export const attach = (file: File): Promise<FilePart> =>
  upload(at`/api/files?name=${file.name || "file"}&type=${file.type || "application/octet-stream"}`, file);
export function fileAddress(file: FilePart, download = false): string {
  if (!file.blob) return /^(?:https?:\/\/|data:)/i.test(file.url ?? "") ? file.url! : "";
  const query = new URLSearchParams({ type: file.media_type, name: file.name ?? "file" });
  if (download) query.set("download", "1");
  return withBase(`${at`/api/files/${file.blob}`}?${query}`);
}

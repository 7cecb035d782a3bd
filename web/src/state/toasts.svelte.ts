/** Short messages at the edge of the web UI: errors, and actions that can be undone. */

export interface Toast {
  id: number;
  text: string;
  kind: "note" | "error";
  action?: { label: string; run: () => void };
}

let count = 0;
export const toasts = $state<Toast[]>([]);

export function dismiss(id: number): void {
  const place = toasts.findIndex((toast) => toast.id === id);
  if (place >= 0) toasts.splice(place, 1);
}

export function tell(text: string, kind: Toast["kind"] = "note", action?: Toast["action"], seconds?: number): number {
  const id = ++count;
  const again = toasts.find((toast) => toast.text === text && toast.action?.run === action?.run);
  if (again) dismiss(again.id); // shown once, and longer
  toasts.push({ id, text, kind, action });
  if (toasts.length > 4) toasts.shift();
  setTimeout(() => dismiss(id), 1000 * (seconds ?? (kind === "error" ? 9 : 5)));
  return id;
}

/** Run a user's action. Errors are shown, not thrown. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error), "error");
    return undefined;
  }
}

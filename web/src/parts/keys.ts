/** Keys as they are meant. */

/** Whether a key still belongs to an input method: Safari says so by its code alone, after the composition has ended. */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === 229;

/** Whether what is typed is meant for a field. */
export function inField(event: KeyboardEvent): boolean {
  return (event.target as HTMLElement | null)?.closest?.("input, textarea, select, [contenteditable]") != null;
}

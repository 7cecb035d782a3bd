/** Interpret keyboard events. */

/** Whether a key still belongs to an input method: Safari reports this only by the key code, after the composition
 * has ended. */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === 229;

/** Whether the key is meant for a field. */
export function inField(event: KeyboardEvent): boolean {
  return (event.target as HTMLElement | null)?.closest?.("input, textarea, select, [contenteditable]") != null;
}

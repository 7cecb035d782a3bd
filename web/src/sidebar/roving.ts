/** One Tab stop for a whole list: the arrow keys lead from row to row, and between the elements of a row.
 *
 * The list is a grid as in the ARIA practices: its rows have cells with links and buttons. */

const ROW = "[role=row]";
const CELL = ":is(a, button):not([role^=menuitem])";

const rowOf = (target: EventTarget | null): HTMLElement | null => (target as HTMLElement | null)?.closest<HTMLElement>(ROW) ?? null;
const cellsOf = (row: Element | undefined): HTMLElement[] => [...(row?.querySelectorAll<HTMLElement>(CELL) ?? [])];

/** The element that this key focuses. `list` contains the rows. */
export function nextCell(list: HTMLElement, { key, target }: KeyboardEvent): HTMLElement | null {
  const row = rowOf(target);
  const column = cellsOf(row ?? undefined).indexOf(target as HTMLElement);
  if (!row || column < 0) return null;
  const rows = [...list.querySelectorAll(ROW)].filter((one) => cellsOf(one).length);
  const at = rows.indexOf(row);
  const [forward, back] = getComputedStyle(list).direction === "rtl" ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
  const moves: Record<string, [Element | undefined, number]> = {
    ArrowDown: [rows[at + 1], column],
    ArrowUp: [rows[at - 1], column],
    Home: [rows[0], column],
    End: [rows.at(-1), column],
    [forward]: [row, column + 1],
    [back]: [row, column - 1],
  };
  const move = moves[key];
  return move ? (cellsOf(move[0])[move[1]] ?? null) : null;
}

/** The focus target when entering the list from outside. */
export const firstCell = (list: HTMLElement): HTMLElement | undefined => cellsOf(list.querySelector(ROW) ?? undefined)[0];

import { afterEach, expect, test } from "vitest";

import { keepFocus } from "../src/parts/focus";

afterEach(() => document.body.replaceChildren());

/** A list whose first row has the focus. */
function list(): { rows: HTMLElement[]; end: () => void } {
  document.body.innerHTML = "<ul><li><button>a</button></li><li><a href='#b' tabindex='0'>b</a></li></ul>";
  const end = keepFocus(document.querySelector("ul") as HTMLElement);
  document.querySelector("button")?.focus();
  return { rows: [...document.querySelectorAll("li")], end };
}

const settled = (): Promise<void> => new Promise((done) => setTimeout(done));

test("who has the focus in a row that goes away goes on from the list", async () => {
  const { rows, end } = list();
  rows[0]?.remove();
  await settled();
  expect(document.activeElement?.textContent).toBe("b");
  end();
});

test("who has left the list is not called back when a row goes away", async () => {
  const { rows, end } = list();
  document.querySelector("button")?.blur(); // by a click on what is read
  await settled();
  rows[0]?.remove();
  await settled();
  expect(document.activeElement).toBe(document.body);
  end();
});

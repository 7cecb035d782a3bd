/** "Edit this": add the image to the message field and choose a model that can change it, if you may choose the model. */

import type { FilePart } from "../api/types";
import { app } from "../state/app.svelte";
import { catalog } from "../state/catalog.svelte";
import { OWN } from "../state/rights";
import { tell } from "../state/toasts.svelte";
import { changesPictures } from "./files";
import { m } from "./words.svelte";

export async function editPicture(file: FilePart): Promise<void> {
  app.attached = file;
  const name = catalog.modelOf(app.chosen);
  const now = catalog.models.find((model) => model.name === name);
  if (now && changesPictures(now)) return;
  const owns = (app.current?.rights ?? OWN) >= OWN;
  const editors = catalog.models.filter((model) => model.ready && changesPictures(model));
  const editor = editors.find(({ type }) => type === "image-edit") ?? editors[0];
  if (editor && owns) await app.choose({ model: editor.name }, false);
  else if (!now?.modalities.includes("image")) tell(m().noEditModel, "note");
}

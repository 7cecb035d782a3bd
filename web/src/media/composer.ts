/** What the message field loads for files, pictures and sound once the page is there. */

export { default as DropFiles } from "../composer/DropFiles.svelte";
export { default as Above } from "./Above.svelte";
export { default as Bar } from "./Bar.svelte";
export { MediaDraft } from "./draft.svelte";

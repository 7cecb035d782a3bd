/** The parts of the message field for files, images and sound, loaded after the web UI is shown. */

export { default as DropFiles } from "../composer/DropFiles.svelte";
export { default as Above } from "./Above.svelte";
export { default as Bar } from "./Bar.svelte";
export { MediaDraft } from "./draft.svelte";

/** Run work once per animation frame, however often it is requested. */

export function perFrame(work: () => void): () => void {
  let due = false;
  const run = (): void => {
    due = false;
    work();
  };
  return () => {
    if (due) return;
    due = true;
    if (document.visibilityState === "visible") requestAnimationFrame(run);
    else setTimeout(run, 250); // hidden tabs have no animation frames
  };
}

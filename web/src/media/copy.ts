/** Copy an image to the clipboard. Browsers accept only PNG there: other formats are converted. */

export const canCopyPictures = (): boolean => typeof ClipboardItem !== "undefined" && "write" in (navigator.clipboard ?? {});

export async function copyPicture(address: string): Promise<void> {
  // Safari requires the promise, not its result, while the click is recent.
  await navigator.clipboard.write([new ClipboardItem({ "image/png": asPng(address) })]);
}

async function asPng(address: string): Promise<Blob> {
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
  canvas.getContext("2d")?.drawImage(picture, 0, 0);
  return pngOf(canvas);
}

export function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png");
  });
}

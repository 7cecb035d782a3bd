/** The painted area over an image, in the image's size. In the saved mask, the painted area is transparent. */

import { pngOf } from "./copy";

interface Point {
  x: number;
  y: number;
}

const COLOUR = "#e0218a";

export class Mask {
  private readonly pen: CanvasRenderingContext2D;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    width: number,
    height: number,
  ) {
    [canvas.width, canvas.height] = [width, height];
    const pen = canvas.getContext("2d");
    if (!pen) throw new Error("this browser cannot paint");
    this.pen = pen;
  }

  /** Draw from one point to another, both as fractions of the image's width and height. */
  stroke(from: Point, to: Point, share: number): void {
    const { width, height } = this.canvas;
    this.pen.strokeStyle = COLOUR;
    this.pen.lineCap = "round";
    this.pen.lineWidth = Math.max(1, share * Math.min(width, height));
    this.pen.beginPath();
    this.pen.moveTo(from.x * width, from.y * height);
    this.pen.lineTo(to.x * width + 0.01, to.y * height); // some browsers do not draw a line of length zero
    this.pen.stroke();
  }

  clear(): void {
    this.pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  /** Black where the image stays, transparent where it is to be changed. */
  png(): Promise<Blob> {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [this.canvas.width, this.canvas.height];
    const pen = copy.getContext("2d");
    if (!pen) throw new Error("this browser cannot paint");
    pen.fillRect(0, 0, copy.width, copy.height);
    pen.globalCompositeOperation = "destination-out";
    pen.drawImage(this.canvas, 0, 0);
    return pngOf(copy);
  }
}

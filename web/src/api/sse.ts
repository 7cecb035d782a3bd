/** Turn the bytes of an event stream into whole messages. Chunks can be cut anywhere. */

export interface Frame {
  id: string | null;
  event: string;
  data: string;
}

export class SseReader {
  private held: string[] = []; // chunks of a line that has not ended
  private id: string | null = null;
  private event = "";
  private data: string[] = [];

  /** Return the messages that a chunk of text completes. */
  *feed(piece: string): Generator<Frame> {
    const ends = /[\r\n]/;
    const before = this.held.at(-1) ?? "";
    this.held.push(piece);
    if (!ends.test(piece) && !before.endsWith("\r")) return; // do not scan a long line again with each of its chunks
    let rest = this.held.join("");
    for (;;) {
      this.held = [rest];
      const end = rest.search(ends);
      if (end < 0) return;
      const isReturn = rest[end] === "\r";
      if (isReturn && end === rest.length - 1) return; // the other half of \r\n can still arrive
      const line = rest.slice(0, end);
      rest = rest.slice(end + (isReturn && rest[end + 1] === "\n" ? 2 : 1));
      this.held = [rest];
      const frame = this.line(line);
      if (frame) yield frame;
    }
  }

  private line(line: string): Frame | null {
    if (line === "") return this.dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null; // a comment keeps the connection alive
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    else if (field === "id" && !value.includes("\0")) this.id = value;
    return null;
  }

  private dispatch(): Frame | null {
    const frame = this.data.length ? { id: this.id, event: this.event || "message", data: this.data.join("\n") } : null;
    this.data = [];
    this.event = "";
    return frame;
  }
}

/** Read the samples of a WAV file while it arrives. */

export interface Form {
  channels: number;
  rate: number;
}

/** Accepts bytes cut anywhere. It supports only 16-bit samples, which speech models produce; anything else is an
 * error. */
export class WavReader {
  form: Form | null = null;
  private rest = new Uint8Array(0);
  private left = Infinity; // bytes of samples left: some streams begin before their length is known

  /** Return the samples of each channel that these bytes complete, or none before the file header is complete. */
  push(bytes: Uint8Array): Float32Array<ArrayBuffer>[] {
    const data = joined(this.rest, bytes);
    const from = this.form ? 0 : this.readHead(data);
    if (!this.form || from === null) {
      this.rest = data;
      return [];
    }
    const { channels } = this.form;
    const frames = Math.floor(Math.min(data.length - from, this.left) / (2 * channels));
    const until = from + frames * 2 * channels;
    this.left -= until - from;
    this.rest = data.slice(until);
    const view = new DataView(data.buffer, data.byteOffset + from, until - from);
    return Array.from({ length: channels }, (_, channel) => Float32Array.from({ length: frames }, (_, at) => view.getInt16(2 * (at * channels + channel), true) / 32_768));
  }

  /** The offset of the first sample; null if it is not known yet. */
  private readHead(data: Uint8Array): number | null {
    const view = new DataView(data.buffer, data.byteOffset, data.length);
    if (data.length < 12) return null;
    if (word(data, 0) !== "RIFF" || word(data, 8) !== "WAVE") throw new Error("no WAV file");
    let form: Form | null = null;
    for (let at = 12; at + 8 <= data.length; ) {
      const [name, size] = [word(data, at), view.getUint32(at + 4, true)];
      if (name === "data") {
        if (!form) throw new Error("no WAV file");
        this.form = form;
        this.left = size === 0 || size >= 0x7fffffff ? Infinity : size;
        return at + 8;
      }
      if (name === "fmt " && at + 24 <= data.length) {
        const [kind, channels, rate, bits] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true), view.getUint32(at + 12, true), view.getUint16(at + 22, true)];
        if (![1, 0xfffe].includes(kind) || bits !== 16 || channels < 1 || channels > 8 || rate < 3000 || rate > 192_000) throw new Error("samples of another kind");
        form = { channels, rate };
      }
      at += 8 + size + (size % 2);
    }
    return null;
  }
}

const word = (data: Uint8Array, at: number): string => String.fromCharCode(...data.subarray(at, at + 4));

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

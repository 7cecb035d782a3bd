/** Convert a recording to WAV, which every transcription model can read. */

const RATE = 16_000;
/** Longer recordings keep the browser's format, which is smaller. */
export const LONGEST = 600; // seconds

export async function asWav(recorded: Blob): Promise<Blob> {
  const sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await recorded.arrayBuffer()); // at that rate
  return new Blob([wavOf(mixed(sound), RATE)], { type: "audio/wav" });
}

function mixed(sound: AudioBuffer): Float32Array {
  const channels = Array.from({ length: sound.numberOfChannels }, (_, place) => sound.getChannelData(place));
  const [first] = channels;
  if (!first || channels.length === 1) return first ?? new Float32Array(0);
  return first.map((_, at) => channels.reduce((sum, channel) => sum + (channel[at] ?? 0), 0) / channels.length);
}

/** 16-bit samples of one channel. */
export function wavOf(samples: Float32Array, rate: number): ArrayBuffer {
  const bytes = samples.length * 2;
  const data = new DataView(new ArrayBuffer(44 + bytes));
  const words = (at: number, text: string): void => [...text].forEach((sign, place) => data.setUint8(at + place, sign.charCodeAt(0)));
  words(0, "RIFF");
  data.setUint32(4, 36 + bytes, true);
  words(8, "WAVEfmt ");
  data.setUint32(16, 16, true);
  data.setUint16(20, 1, true); // PCM
  data.setUint16(22, 1, true); // channels
  data.setUint32(24, rate, true);
  data.setUint32(28, rate * 2, true);
  data.setUint16(32, 2, true);
  data.setUint16(34, 16, true);
  words(36, "data");
  data.setUint32(40, bytes, true);
  samples.forEach((sample, at) => data.setInt16(44 + at * 2, Math.round(Math.max(-1, Math.min(1, sample)) * 32_767), true));
  return data.buffer as ArrayBuffer;
}

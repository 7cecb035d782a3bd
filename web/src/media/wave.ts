/** The loudness of a sound over time, as a few bars. The browser decodes it outside the main thread. */

export const BARS = 96;
export const LARGEST = 5_000_000; // bytes; a larger sound has a plain line

/** The peak of each section, relative to the loudest. */
export function peaksOf(samples: Float32Array, bars = BARS): number[] {
  const stretch = Math.max(1, Math.ceil(samples.length / bars));
  const stride = Math.max(1, Math.floor(stretch / 200)); // enough samples to see a shape, and fast
  const peaks: number[] = [];
  for (let from = 0; from < samples.length; from += stretch) {
    let peak = 0;
    for (let at = from; at < Math.min(from + stretch, samples.length); at += stride) peak = Math.max(peak, Math.abs(samples[at] ?? 0));
    peaks.push(peak);
  }
  const most = Math.max(...peaks, 0);
  return most > 0 ? peaks.map((peak) => peak / most) : peaks;
}

/** Null if this browser cannot decode it. */
export async function waveOf(address: string): Promise<{ peaks: number[]; seconds: number } | null> {
  try {
    const data = await (await fetch(address)).arrayBuffer();
    if (data.byteLength > LARGEST) return null;
    const sound = await new OfflineAudioContext(1, 1, 8000).decodeAudioData(data);
    return { peaks: peaksOf(sound.getChannelData(0)), seconds: sound.duration };
  } catch {
    return null;
  }
}

/** Rules as they are listed: those of the settings with their place, then those that answers left behind. */

/** `dragoman.toml:4` is what is looked for; the folders before it are not. */
export const short = (origin: string): string => origin.replace(/^.*[\\/](?=[^\\/]+$)/, "");

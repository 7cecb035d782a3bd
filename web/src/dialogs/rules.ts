/** Rules as they are listed: those of the settings with their place, then those that answers left behind. */

/** `/home/ada/dragoman.toml:4` is the line that is looked for; the folders before it are not. */
export const short = (origin: string): string => origin.replace(/^.*[\\/](?=[^\\/]+$)/, "");

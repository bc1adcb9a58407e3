/** The checkout, whatever the working directory is. */
export const root: string

/** Whether this folder can be written, or made where it does not exist yet. */
export const isWritable: (folder: string) => boolean

/** ALMANAC_CACHE_DIR, XDG_CACHE_HOME/almanac, ~/.cache/almanac, or .cache in the checkout. */
export const cacheDirectory: (environment?: NodeJS.ProcessEnv) => string

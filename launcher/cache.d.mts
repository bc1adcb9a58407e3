/** The root of the checkout, regardless of the working directory. */
export const root: string

/** Whether this folder is writable, or can be created if it does not exist. */
export const isWritable: (folder: string) => boolean

/**
 * The cache folder: ALMANAC_CACHE_DIR, XDG_CACHE_HOME/almanac, ~/.cache/almanac, or .cache in the
 * checkout.
 */
export const cacheDirectory: (environment?: NodeJS.ProcessEnv) => string

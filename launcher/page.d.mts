/** Whether the built pages match their sources. */
export const hasPage: () => boolean

/** Builds the pages; returns the reason if that fails. */
export const buildPage: () => string | undefined

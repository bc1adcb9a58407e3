/** Whether the built pages are those that their sources make. */
export const hasPage: () => boolean

/** Builds them. Answers why not, nothing when they are there. */
export const buildPage: () => string | undefined

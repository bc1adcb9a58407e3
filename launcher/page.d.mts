/** Whether the built page is the one that its sources make. */
export const hasPage: () => boolean

/** Builds it. Answers why it could not be, nothing when it is there. */
export const buildPage: () => string | undefined

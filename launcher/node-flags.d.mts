/** What Node is started with for a verb; nothing for one that runs for long. */
export const nodeFlags: (verb: string | undefined) => ReadonlyArray<string>

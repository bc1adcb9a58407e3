/**
 * How Node is started for a verb.
 *
 * A verb that ends soon spends a tenth of its time collecting garbage out of a nursery that begins
 * at one megabyte; what runs for long would only hold the memory.
 */
const long_lived = new Set(["serve", "agent", "cluster"])

/** Whether it does its work and ends. */
export const endsSoon = (verb) => verb !== undefined && !long_lived.has(verb)

export const nodeFlags = (verb) => (endsSoon(verb) ? ["--min-semi-space-size=16"] : [])

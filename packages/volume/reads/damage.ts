/**
 * Damage that a read suspects in a copy: thrown inside the volume's reads, and mapped to a fault at
 * their boundary.
 */

export interface Damage {
  /** Lost: the copy's file is missing. */
  readonly kind: "quarantined" | "lost"
  readonly detail: string
}

/** The detail for a copy whose record is damaged. */
export const damaged_record = "The blob's record in the log is damaged."

/** An error that carries the damage, for `damageOf`. */
export const damaged = (detail: string, kind: Damage["kind"] = "quarantined"): Error =>
  Object.assign(new Error(detail), { damage: { kind, detail } })

export const damageOf = (cause: unknown): Damage | undefined =>
  // Only `damaged` makes errors with a field of this name.
  cause instanceof Error && "damage" in cause ? (cause.damage as Damage) : undefined

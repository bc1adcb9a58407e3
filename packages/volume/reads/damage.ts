/**
 * What a read finds wrong with a copy, before it is certain: thrown inside the volume's reads, and
 * turned into a fault where they end.
 */

export interface Damage {
  /** Lost is a copy whose file is gone. */
  readonly kind: "quarantined" | "lost"
  readonly detail: string
}

/** What is told of a copy whose record does not hold. */
export const damaged_record = "What the log says of the blob is damaged."

/** An error to throw that carries the damage; `damageOf` takes it out again. */
export const damaged = (detail: string, kind: Damage["kind"] = "quarantined"): Error =>
  Object.assign(new Error(detail), { damage: { kind, detail } })

export const damageOf = (cause: unknown): Damage | undefined =>
  // Only `damaged` makes errors with a field of this name.
  cause instanceof Error && "damage" in cause ? (cause.damage as Damage) : undefined

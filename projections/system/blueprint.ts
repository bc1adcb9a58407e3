/** Almanac's own read model: its tables, and how they are maintained. */
import { Context, Layer } from "effect"
import { type Blueprint, type ReadModel, readModel, unmaintained } from "#projections/read-model.ts"
import { type AuditTables, audit, type Detail } from "#projections/system/audit.ts"
import { type QuarantineTables, quarantine } from "#projections/system/quarantine.ts"

export type SystemTables = AuditTables & QuarantineTables

/** Reads the whole log; `details` are what services' events contain beyond their commits. */
export const blueprint = (details: ReadonlyArray<Detail>): Blueprint<SystemTables> => ({
  service: "system",
  version: 2,
  part: "",
  projections: [audit(details), quarantine],
  is_background: true,
})

export class SystemModel extends Context.Service<SystemModel, ReadModel<SystemTables>>()(
  "projections/SystemModel",
) {
  /** Follows the log for the lifetime of the layer, unless this process must not. */
  static readonly layer = (details: ReadonlyArray<Detail>, is_maintained = true) =>
    Layer.effect(this, (is_maintained ? readModel : unmaintained)(blueprint(details)))
}

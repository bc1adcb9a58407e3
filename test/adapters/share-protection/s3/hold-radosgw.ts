/** Runs a radosgw in the given folder until the process is killed. */
import { Effect } from "effect"
import { radosgw } from "#adapters/share-protection/radosgw.ts"

const [, , folder = ""] = process.argv

const held = Effect.andThen(radosgw({ folder, store: "memstore" }), Effect.never)

Effect.runFork(Effect.scoped(held))

/** A mirror meets the registry contract, regardless of the files it was imported from. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { afterAll } from "vitest"
import { registryMirror } from "#adapters/carrier-search/mirror.ts"
import { type Docket, registryContract } from "../contract/registry.ts"
import { importTexts, legacyOf, motusOf } from "./mirror-given.ts"

const made = mkdtempSync(join(tmpdir(), "almanac-mirrors-"))
afterAll(() => rmSync(made, { recursive: true, force: true }))
let count = 0

/** A registry over a mirror imported from these files. */
const registryOf =
  (filesOf: (dockets: ReadonlyArray<Docket>) => Record<string, string>) =>
  (dockets: ReadonlyArray<Docket>) =>
    Layer.unwrap(
      Effect.promise(async () => {
        const path = join(made, `${++count}.sqlite`)
        await importTexts(path, filesOf(dockets))
        return registryMirror({ path })
      }),
    )

const filler = { mc: 99_000_000, dot: 99_000_000, name: "-", active: false, carrier_only: true }

registryContract(
  "a mirror of legacy",
  registryOf((dockets) => ({ "l.csv": legacyOf([...dockets, filler]) })),
)
registryContract(
  "a mirror of Motus",
  registryOf((dockets) => ({ "m.csv": motusOf([...dockets, filler]) })),
)
registryContract(
  "a mirror of both, where legacy says otherwise of what Motus has",
  registryOf((dockets) => {
    const isMotus = ({ dot }: Docket) => dot % 2 === 0
    const wrong = dockets
      .filter(isMotus)
      .map((docket) => ({ ...docket, name: "OLD", active: !docket.active }))
    const legacy = [...dockets.filter((docket) => !isMotus(docket)), ...wrong, filler]
    return { "l.csv": legacyOf(legacy), "m.csv": motusOf([...dockets.filter(isMotus), filler]) }
  }),
)

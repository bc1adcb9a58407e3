/** The engine contract for restic in buckets of a real S3 server. */
import { layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { engineRestic } from "#adapters/share-protection/engine-restic.ts"
import { engineContract } from "../../../contract/share-protection/engine.ts"
import { temporaryFolder } from "../../programs/nats.ts"
import { describeWithRadosgw, S3, type TestBucketOptions } from "../../programs/radosgw.ts"
import { describeWithRestic, obedientRestic, restic } from "../../programs/restic.ts"
import { engineBuckets } from "./buckets.ts"

const engine = Layer.unwrap(
  Effect.map(temporaryFolder, (folder) =>
    engineRestic({
      binary: obedientRestic(folder) ?? restic,
      cache_dir: `${folder}/cache`,
    }),
  ),
)

/** One test file per kind of bucket: each takes minutes, and files run in parallel. */
export const resticPromises = (what: string, options: TestBucketOptions) => {
  describeWithRestic(`restic in ${what}`, () => {
    describeWithRadosgw("of a real server", () => {
      const shared = layer(Layer.merge(S3.layer, engine), {
        excludeTestServices: true,
        timeout: "60 seconds",
      })
      shared("keeps what an engine promises", (it) => {
        engineContract((name, body) =>
          it.effect(name, () =>
            Effect.flatMap(S3, (s3) => Effect.scoped(body(engineBuckets(s3, options)))),
          ),
        )
      })
    })
  })
}

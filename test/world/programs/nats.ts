/** A real nats-server with the product's own configuration, for tests. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, layer } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { EventsConnection, NatsConnection, type NatsServer } from "#bus"
import { findBinary, missingBinary } from "../../../launcher/binaries.mjs"
import { describeAbsent } from "./absent.ts"

/** The services that a test with its own bus can use. */
export type Nats = DataFolder | NatsServer | NatsConnection | EventsConnection

/** A new folder below the system's temporary one, deleted with the scope. */
export const temporaryFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "almanac-test-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
)

/** A locked temporary folder, a server in it on a free port, and both connections to it. */
export const nats = Layer.unwrap(
  Effect.map(temporaryFolder, (folder) =>
    Layer.merge(NatsConnection.layer, EventsConnection.layer).pipe(
      Layer.provideMerge(ownServerLayer()),
      Layer.provideMerge(DataFolder.layer(folder)),
    ),
  ),
)

const found = findBinary("nats-server") !== undefined

/**
 * Tests that share one server: a `describe` whose `it.effect` bodies can use the services of
 * `Nats`, on the real clock. Without a nats-server they are skipped with one line, and fail if
 * ALMANAC_REQUIRE_ALL=1.
 */
export const describeNats = (
  name: string,
  define: (it: Parameters<Parameters<ReturnType<typeof shared>>[1]>[0]) => void,
) => {
  if (found) return shared()(name, define)
  skip(name)
}

const shared = () => layer(nats, { excludeTestServices: true, timeout: "60 seconds" })

/** A `describe` for tests that start servers themselves, under the same rule. */
export const describeWithServer = (name: string, define: () => void) => {
  if (found) return describe(name, define)
  skip(name)
}

const skip = (name: string) => {
  const why = missingBinary("nats-server")
  describeAbsent(name, "nats-server", why)
}

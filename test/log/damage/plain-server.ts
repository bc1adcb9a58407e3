/** A plain nats-server, without Almanac, to prepare a store. */
import { join } from "node:path"
import type { StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { ownServer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { connectBus, undefinedIfMissing } from "#bus"
import { logStreamConfig } from "#journal"

/** Maximum bytes of a stream for which nats-server chooses blocks of 32 KB instead of 8 MB. */
const small_stream_bytes = 120_000

const bus = (data_dir: string) =>
  Effect.gen(function* () {
    const nats = join(data_dir, "nats")
    const folder = DataFolder.of({ path: data_dir, run: join(data_dir, "run"), nats })
    const server = yield* Effect.provideService(ownServer({}), DataFolder, folder)
    return yield* connectBus({ servers: server.servers, login: server.core })
  })

/**
 * Makes the next nats-server on this folder write the stream in small blocks, so that a few hundred
 * commits fill several, which it then compresses. The log removes the limit when it starts.
 */
export const smallBlocks = (data_dir: string, stream: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { jsm } = yield* bus(data_dir)
      const found = yield* Effect.promise(() => jsm.streams.info(stream).catch(undefinedIfMissing))
      const max_bytes = small_stream_bytes
      yield* Effect.promise<StreamInfo>(() =>
        found === undefined
          ? jsm.streams.add({ ...logStreamConfig({ stream }), max_bytes })
          : jsm.streams.update(stream, { max_bytes }),
      )
    }),
  )

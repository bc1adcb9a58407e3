import { Effect } from "effect"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { blobEngineContract } from "../../contract/blob-storage/engine.ts"
import { concurrency, journal } from "../../contract/blob-storage/engine-journal.ts"

blobEngineContract("a blob engine in memory", (limits) => Effect.sync(() => memoryEngine(limits)), [
  concurrency,
  journal,
])

import { blobMemory } from "#adapters/blob-storage/memory/memory.ts"
import { blobStoreContract } from "../contract/blob-store.ts"
import { concurrency, journal } from "../contract/blob-store-journal.ts"

blobStoreContract("a blob store in memory", blobMemory, [concurrency, journal])

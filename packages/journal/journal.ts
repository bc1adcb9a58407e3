/** The log over JetStream, its generations, and its guard against loss. See README.md. */
export { decode, digest, type Encoded, sha256 } from "./commits/codec.ts"
export { logMemory } from "./commits/memory.ts"
export {
  type ArchiveIndex,
  archiveIndex,
  completeArchive,
  isArchived,
  openArchive,
  readArchive,
} from "./generations/archive.ts"
export {
  endedMark,
  findGenerations,
  firstGeneration,
  type Generation,
  nextGeneration,
  position_header,
  positionOf,
  restoring_key,
} from "./generations/generation.ts"
export { type GenerationsOptions, logGenerations, optionsOf } from "./generations/generations.ts"
export { type Mark, mark_file, openMark, readMark } from "./guard/high-water-mark.ts"
export { preserveBlocks, preserved_folder, removePreserved } from "./guard/preserved-blocks.ts"
export { settleMark } from "./guard/settle-mark.ts"
export { compareVolume, keepVolumeWitness } from "./guard/volume-witness.ts"
export {
  checkAbsent,
  checkStream,
  LogWatch,
  newWatch,
  type StreamQueries,
  type Watched,
} from "./guard/watch.ts"
export {
  compareWith,
  readVolumeWitness,
  readWitnesses,
  volume_witness_file,
} from "./guard/witnesses.ts"
export { appender } from "./jetstream/appender.ts"
export { type Delivered, openConsumer, type Source } from "./jetstream/consumer.ts"
export { appendFailure, isRefused, readFailure } from "./jetstream/failure.ts"
export { logJetStream, logStreamConfig } from "./jetstream/jetstream.ts"
export { pace, type WriteMode } from "./jetstream/pace.ts"
export type { AppendResult } from "./jetstream/queue.ts"
export { readMessages } from "./jetstream/reader.ts"
export { append_timeout_ms, type Write, writer } from "./jetstream/write.ts"

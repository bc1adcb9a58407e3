/**
 * Bytes on this disk that belong to no blob yet: few in memory, many in extents that no record
 * refers to. The next startup frees those.
 *
 * Source: document 1 §2 Replication policies; docs/decisions/0121-copies-of-a-cluster.md.
 */
import type { StagedBytes, Staging } from "#actors/blob-storage/ports/node-engine.ts"
import type { ExtentFiles } from "../extents/files.ts"
import type { Extent } from "../log/record.ts"
import type { VolumeParts } from "../parts.ts"
import { window_bytes } from "../reads/chunks.ts"
import { type Windows, windowsIn } from "../reads/windows.ts"
import {
  hashed,
  type IntakeParts,
  identified,
  makeSession,
  mayBeStored,
  type Session,
} from "./intake.ts"

async function* windowsOf(windows: Windows, extents: ReadonlyArray<Extent>, size: number) {
  for (const window of windowsIn({ start: 0, end: size })) {
    yield await windows.read(extents, size, window)
  }
}

async function* partsOf(parts: ReadonlyArray<Uint8Array>) {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += window_bytes) {
      yield part.subarray(at, at + window_bytes)
    }
  }
}

type StageParts = IntakeParts & Pick<VolumeParts, "index">

/** The bytes that an intake received, readable repeatedly until it is aborted. */
const sealed = async (windows: Windows, { intake }: Session): Promise<StagedBytes> => {
  const surplus = intake.surplus()
  const large = intake.large()
  const size = intake.size()
  if (surplus) {
    const { cause, hasher } = surplus
    const { id, hash } = identified(hasher)
    const windows = () => {
      throw cause
    }
    return { id, checksum: hash, size, windows, no_room: { cause } }
  }
  if (large) {
    const extents = await large.stream.complete()
    const { id, hash } = identified(large.hasher)
    return { id, checksum: hash, size, windows: () => windowsOf(windows, extents, size) }
  }
  const parts = intake.buffered.take(intake.buffered.bytes())
  const { id, hash } = identified(hashed(parts))
  return { id, checksum: hash, size, windows: () => partsOf(parts) }
}

/** Seals the bytes that a session received. Idempotent. */
export const makeSeal = (windows: Windows, session: Session) => {
  let sealing: Promise<StagedBytes> | undefined
  return () => {
    sealing ??= session.work(() => sealed(windows, session))
    return sealing
  }
}

export const makeStage =
  (parts: StageParts, extents: ExtentFiles, windows: Windows) =>
  (size: number | undefined): Staging => {
    const mayBeDuplicate = (bytes: number) => mayBeStored(parts, Math.max(bytes, size ?? 0))
    const session = makeSession(parts, extents, { announced: size, mayBeDuplicate })
    const { write, abort } = session
    return { write, seal: makeSeal(windows, session), abort }
  }

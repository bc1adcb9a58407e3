/** Fake extent files without content, on a disk with limited space. */
import type { VolumeFile } from "../disk.ts"
import { data_start } from "../log/format.ts"
import type { Segment, Segments } from "../parts.ts"

export const segment_bytes = 1024 * 1024 + data_start

export const no_file: VolumeFile = {
  write: async () => {},
  read: async () => new Uint8Array(0),
  readSync: () => new Uint8Array(0),
  truncate: async () => {},
  datasync: async () => {},
  size: async () => segment_bytes,
  close: async () => {},
}

/** Files on a disk with space for this many. */
export const fakeSegments = (files_max = 100, file = no_file, written_bytes = data_start) => {
  const files = new Map<number, Segment>()
  const take = async (): Promise<Segment> => {
    await Promise.resolve()
    if (files.size === files_max) throw Object.assign(new Error("full"), { code: "ENOSPC" })
    const number = files.size + 1
    const size = { bytes: segment_bytes, written_bytes }
    const seeds = { generation: number, ...size, seed: number, format: 1 }
    const segment: Segment = { kind: "ext", number, ...seeds, file }
    files.set(number, segment)
    return segment
  }
  const segments: Segments = {
    find: (kind, number) => (kind === "ext" ? files.get(number) : undefined),
    all: () => Array.from(files.values()),
    take,
    retire: async () => {},
  }
  return { segments, files }
}

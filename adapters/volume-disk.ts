/**
 * All that a volume asks of a file system, named so that a simulator can stand in its place and let
 * any step fail, tear, reorder or vanish.
 */

export interface VolumeFile {
  /**
   * Writes the parts one behind the other from `position` on, all of them, however many calls it
   * takes. Positions and lengths in bytes.
   */
  readonly write: (parts: ReadonlyArray<Uint8Array>, position: number) => Promise<void>
  /** Reads `length` bytes, or fewer where the file ends, into a buffer of the caller's or its own. */
  readonly read: (position: number, length: number, into?: Uint8Array) => Promise<Uint8Array>
  /** As `read`, at once: for a few KiB that the page cache most likely has. */
  readonly readNow: (position: number, length: number) => Uint8Array
  /** Makes what was written durable. After it failed once nobody may trust the file's cache. */
  readonly datasync: () => Promise<void>
  readonly size: () => Promise<number>
  readonly close: () => Promise<void>
}

export interface VolumeDisk {
  readonly makeFolder: (path: string) => Promise<void>
  /** Makes a file that must not exist yet, of mode 0600. */
  readonly create: (path: string) => Promise<VolumeFile>
  /** Opens a file for reading and writing. */
  readonly open: (path: string) => Promise<VolumeFile>
  readonly rename: (from: string, to: string) => Promise<void>
  /** Removes a file; one that is not there is as good as removed. */
  readonly remove: (path: string) => Promise<void>
  readonly names: (folder: string) => Promise<ReadonlyArray<string>>
  /** Makes the names in a folder durable. */
  readonly syncFolder: (path: string) => Promise<void>
}

/** What of a folder is backed up where a policy includes some of it: restic has no such word. */
import { Effect } from "effect"
import { EngineFailed, type FolderBackup } from "#actors/share-protection/ports/engine.ts"
import { entriesOf, inside } from "#files"
import { fitter } from "./pattern.ts"

/** Files and folders that are named one by one: the snapshot records each name. */
const named_max = 20_000
/** Entries that are looked at for a match, of a share that nobody should search for a pattern. */
const entries_max = 10_000_000

type Patterns = Pick<FolderBackup, "include_patterns" | "exclude_patterns">

const fails = (detail: string) => new EngineFailed({ detail, wrote_nothing: true })

/**
 * The paths below a folder that are included, each ended by a zero byte, as restic's
 * `--files-from-raw` takes them; of a folder that matches only itself. Links are not followed. What
 * is excluded is none of them: restic minds its excludes only below what it is given by name.
 */
export const includedPaths = (folder: string, { include_patterns, exclude_patterns }: Patterns) =>
  Effect.callback<Buffer, EngineFailed>((resume) => {
    const controller = new AbortController()
    const isIncluded = fitter(include_patterns)
    const isExcluded = fitter(exclude_patterns)
    const judge = (parts: ReadonlyArray<string>) =>
      isExcluded(parts) === "matched" ? "none" : isIncluded(parts)
    const ended = search(folder, judge, controller.signal).then(
      (found) => resume(Effect.succeed(found)),
      (error) => resume(Effect.fail(error instanceof EngineFailed ? error : unreadable)),
    )
    return Effect.promise(() => {
      controller.abort()
      return ended
    })
  })

const unreadable = fails("The folder cannot be searched for what is included.")

// Names are bytes, whatever an encoding makes of them: paths are kept as such.
const search = async (root: string, judge: ReturnType<typeof fitter>, signal: AbortSignal) => {
  const found: Array<Buffer> = []
  const waiting: Array<{ readonly path: Buffer; readonly parts: ReadonlyArray<string> }> = [
    { path: Buffer.alloc(0), parts: [] },
  ]
  let entries = 0
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for await (const { name, is_folder } of entriesBelow(root, next.path)) {
      signal.throwIfAborted()
      if (++entries > entries_max) throw fails(`The folder has more than ${entries_max} entries.`)
      const parts = [...next.parts, name.toString("utf8")]
      const path = name === here ? next.path : inside(next.path, name)
      const is = name === here ? "matched" : judge(parts)
      if (is === "above" && is_folder) waiting.push({ path, parts })
      if (is !== "matched") continue
      found.push(Buffer.from("."), path, zero)
      if (found.length > 3 * named_max) {
        throw fails(
          `The patterns include more than ${named_max} files one by one: include their folders.`,
        )
      }
    }
  }
  return Buffer.concat(found)
}

const zero = Buffer.from("\0")
/** A folder that may not be read is named itself: restic then says that it may not. */
const here = Buffer.from(".")

async function* entriesBelow(root: string, path: Buffer) {
  try {
    yield* entriesOf(Buffer.concat([Buffer.from(root), path]))
  } catch (error) {
    if (path.length === 0) throw error
    yield { name: here, is_folder: false }
  }
}

/**
 * Finds the files and folders that match the include patterns of a policy; restic has no such
 * option.
 */
import { Effect } from "effect"
import { EngineFailed, type FolderBackup } from "#actors/share-protection/ports/engine.ts"
import { entriesOf, inside } from "#files"
import { makeMatcher } from "./pattern.ts"

/** Maximum number of paths passed to restic: the snapshot records each. */
const named_max = 20_000
/** Maximum number of entries to search. */
const entries_max = 10_000_000

type Patterns = Pick<FolderBackup, "include_patterns" | "exclude_patterns">

const fails = (detail: string) => new EngineFailed({ detail, wrote_nothing: true })

/**
 * The included paths below a folder, each terminated by a zero byte, for restic's
 * `--files-from-raw`. A matching folder stands for its contents. Links are not followed. Excluded
 * paths are left out here, because restic applies excludes only below the paths it is given.
 */
export const includedPaths = (folder: string, { include_patterns, exclude_patterns }: Patterns) =>
  Effect.callback<Buffer, EngineFailed>((resume) => {
    const controller = new AbortController()
    const isIncluded = makeMatcher(include_patterns)
    const isExcluded = makeMatcher(exclude_patterns)
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

const unreadable = fails("The folder could not be searched for included files.")

// Paths are kept as bytes, because names may be invalid UTF-8.
const search = async (root: string, judge: ReturnType<typeof makeMatcher>, signal: AbortSignal) => {
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
          `The patterns match more than ${named_max} separate files: include folders instead.`,
        )
      }
    }
  }
  return Buffer.concat(found)
}

const zero = Buffer.from("\0")
/** An unreadable folder is passed itself, so that restic reports the error. */
const here = Buffer.from(".")

async function* entriesBelow(root: string, path: Buffer) {
  try {
    yield* entriesOf(Buffer.concat([Buffer.from(root), path]))
  } catch (error) {
    if (path.length === 0) throw error
    yield { name: here, is_folder: false }
  }
}

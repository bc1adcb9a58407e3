/**
 * From an export as Manila tells it, `host:/path`, to a folder of this machine.
 *
 * Source: decisions of document 2, identity, secrets, shares; 0065.
 */
import { execFile } from "node:child_process"
import { lstat, mkdir, readdir, readFile, rmdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import {
  BackendUnavailable,
  NetworkStrategyPrecondition,
} from "#schemas/share-protection/rejection.ts"

/** Who reads reads only: what a backup could change, nobody would notice. */
export type Access = "ro" | "rw"

export interface Mounts {
  /** The folder where an export is; the same again for the same name. */
  readonly attach: (
    export_path: string,
    name: string,
    access: Access,
  ) => Effect.Effect<string, NetworkStrategyPrecondition | BackendUnavailable>
  /** Lets go of what was attached by this name, if anything. */
  readonly detach: (name: string) => Effect.Effect<void, BackendUnavailable>
}

export const no_export = Effect.fail(
  new NetworkStrategyPrecondition({
    detail: "The share is exported nowhere that a worker reaches.",
  }),
)

/** `host:/path`, the host in brackets where it is an IPv6 address. */
const export_pattern = /^(\[[\da-fA-F:.]+\]|\w[\w.-]*):(\/[^\0]*)$/

/** Exports of this very machine, which are folders of it. Anything else is not reached. */
export const localMounts: Mounts = {
  attach: (export_path) =>
    Effect.flatMap(
      Effect.promise(() => localFolder(export_path)),
      (path) => (path === undefined ? no_export : Effect.succeed(path)),
    ),
  detach: () => Effect.void,
}

const own_hosts = new Set(["127.0.0.1", "[::1]", "localhost"])

const localFolder = async (export_path: string) => {
  const [, host = "", path = ""] = export_pattern.exec(export_path) ?? []
  if (!own_hosts.has(host)) return undefined
  const is_folder = await lstat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
  return is_folder ? path : undefined
}

export interface NfsOptions {
  /** Absolute: a folder for each mount is made in it. */
  readonly folder: string
  /** Programs to run, by PATH or absolute. */
  readonly mount: string
  readonly umount: string
  /** What is mounted now: Linux tells it in /proc/self/mounts. */
  readonly table: string
}

/** Linux's own programs, below this folder. */
export const nfsOf = (folder: string): NfsOptions => ({
  folder,
  mount: "mount",
  umount: "umount",
  table: "/proc/self/mounts",
})

/** A server that does not answer keeps mount for minutes: a job may be tried again instead. */
const program_ms_max = 60_000

/** No device, no program and no set-user-id of a tenant's counts here. */
const options_always = "nosuid,nodev,noexec"

/** Exports mounted over NFS, for the life of the scope. Needs root. */
export const nfsMounts = Effect.fnUntraced(function* (options: NfsOptions) {
  const { folder } = options
  const detach = (name: string) => unmounted(options, join(folder, name))
  // What an earlier process left, and what this one leaves.
  const detachAll = Effect.flatMap(
    Effect.promise(() => readdir(folder).catch((): ReadonlyArray<string> => [])),
    Effect.forEach(detach, { discard: true }),
  )
  yield* Effect.ignore(detachAll)
  yield* Effect.addFinalizer(() => Effect.ignore(detachAll))
  const mounts: Mounts = {
    attach: Effect.fnUntraced(function* (export_path, name, access) {
      if (!export_pattern.test(export_path)) return yield* no_export
      const path = join(folder, name)
      yield* attempt("make a folder", () => mkdir(path, { recursive: true, mode: 0o700 }))
      if (yield* isMounted(options, path)) return path
      const flags = ["-t", "nfs", "-o", `${access},${options_always}`, "--", export_path, path]
      yield* program(options.mount, flags)
      return path
    }),
    detach,
  }
  return mounts
})

const unavailable = (what: string, cause: unknown) => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
  return new BackendUnavailable({ detail: `Cannot ${what} for a share: ${code}.` })
}

const attempt = <A>(what: string, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => unavailable(what, cause) })

/** Runs to its end; interrupted, the program is killed. */
const program = (name: string, args: ReadonlyArray<string>) =>
  Effect.callback<void, BackendUnavailable>((resume) => {
    const child = execFile(name, args, { timeout: program_ms_max }, (error) => {
      resume(error === null ? Effect.void : Effect.fail(unavailable("mount or unmount", error)))
    })
    return Effect.sync(() => child.kill())
  })

const isMounted = ({ table }: NfsOptions, path: string) =>
  attempt("see what is mounted", async () => {
    const lines = (await readFile(table, "utf8")).split("\n")
    // The table writes a space in a path as \040.
    return lines.some((line) => line.split(" ")[1]?.replaceAll("\\040", " ") === path)
  })

const unmounted = Effect.fnUntraced(function* (options: NfsOptions, path: string) {
  if (yield* isMounted(options, path)) yield* program(options.umount, ["--", path])
  // Never with what is in it: were it still mounted, that would be the tenant's.
  yield* attempt("remove a folder", () =>
    rmdir(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error
    }),
  )
})

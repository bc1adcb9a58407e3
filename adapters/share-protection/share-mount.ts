/**
 * Mounts the exports that Manila lists, `host:/path`, as folders of this machine.
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

/** Readers mount read-only, so that a backup cannot change a share. */
export type Access = "ro" | "rw"

export interface Mounts {
  /**
   * Mounts an export and returns its folder; repeating this with the same name returns the same
   * folder.
   */
  readonly attach: (
    export_path: string,
    name: string,
    access: Access,
  ) => Effect.Effect<string, NetworkStrategyPrecondition | BackendUnavailable>
  /** Unmounts the export with this name, if any. */
  readonly detach: (name: string) => Effect.Effect<void, BackendUnavailable>
}

export const no_export = Effect.fail(
  new NetworkStrategyPrecondition({
    detail: "The share has no export location that a worker can reach.",
  }),
)

/** `host:/path`, with an IPv6 host in brackets. */
const export_pattern = /^(\[[\da-fA-F:.]+\]|\w[\w.-]*):(\/[^\0]*)$/

/** Exports of this machine itself, which are local folders. Others are not supported. */
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
  /** Absolute path of the folder in which mount points are created. */
  readonly folder: string
  /** Programs to run, found in PATH or absolute. */
  readonly mount: string
  readonly umount: string
  /** The list of mounts; on Linux /proc/self/mounts. */
  readonly table: string
}

/** Linux's own programs, with mount points in this folder. */
export const nfsOf = (folder: string): NfsOptions => ({
  folder,
  mount: "mount",
  umount: "umount",
  table: "/proc/self/mounts",
})

/**
 * Timeout of a program in milliseconds: mount waits minutes for a server that does not respond, and
 * a job can be retried instead.
 */
const program_ms_max = 60_000

/** Devices, programs and set-user-id bits of a tenant have no effect here. */
const options_always = "nosuid,nodev,noexec"

/** Mounts exports over NFS until the scope closes. Requires root. */
export const nfsMounts = Effect.fnUntraced(function* (options: NfsOptions) {
  const { folder } = options
  const detach = (name: string) => unmount(options, join(folder, name))
  // Also unmounts what an earlier process left.
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
      yield* attempt("create a folder", () => mkdir(path, { recursive: true, mode: 0o700 }))
      if (yield* isMounted(options, path)) return path
      const flags = ["-t", "nfs", "-o", `${access},${options_always}`, "--", export_path, path]
      yield* program(options.mount, flags)
      return path
    }),
    detach,
  }
  return mounts
})

const unavailable = (action: string, cause: unknown) => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
  return new BackendUnavailable({ detail: `Cannot ${action} for a share: ${code}.` })
}

const attempt = <A>(action: string, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => unavailable(action, cause) })

/** Runs a program to completion; an interrupt kills it. */
const program = (name: string, args: ReadonlyArray<string>) =>
  Effect.callback<void, BackendUnavailable>((resume) => {
    const child = execFile(name, args, { timeout: program_ms_max }, (error) => {
      resume(error === null ? Effect.void : Effect.fail(unavailable("mount or unmount", error)))
    })
    return Effect.sync(() => child.kill())
  })

const isMounted = ({ table }: NfsOptions, path: string) =>
  attempt("list the mounts", async () => {
    const lines = (await readFile(table, "utf8")).split("\n")
    // The list escapes a space in a path as \040.
    return lines.some((line) => line.split(" ")[1]?.replaceAll("\\040", " ") === path)
  })

const unmount = Effect.fnUntraced(function* (options: NfsOptions, path: string) {
  if (yield* isMounted(options, path)) yield* program(options.umount, ["--", path])
  // Never removes contents: if it were still mounted, they would be the tenant's.
  yield* attempt("remove a folder", () =>
    rmdir(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error
    }),
  )
})

/** The data folder: created, locked for one process, and provided as a service. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join, resolve } from "node:path"
import Sqlite from "better-sqlite3"
import { Clock, Context, Effect, Layer, Predicate, Schema } from "effect"
import { removePartials } from "#adapters/data-folder/partial-file.ts"
import { releaseReserve } from "#adapters/data-folder/reserve.ts"
import { makeFolder } from "#files"
import { causeText } from "#schemas/cause-text.ts"

/** Another process holds the data folder; the message names it and a remedy. */
export class DataFolderLocked extends Schema.TaggedError<DataFolderLocked>()("DataFolderLocked", {
  message: Schema.String,
  path: Schema.String,
  /** Null when the holder has not written its process id yet. */
  pid: Schema.NullOr(Schema.Int),
}) {}

/** The data folder cannot be created or written; the message is one line for the operator. */
export class DataFolderUnusable extends Schema.TaggedError<DataFolderUnusable>()(
  "DataFolderUnusable",
  { message: Schema.String, path: Schema.String, reason: Schema.String },
) {}

/**
 * The data folder of this process, locked until the layer is released. Anything that must not run
 * twice on one folder (nats-server has no lock of its own) depends on this service.
 */
export class DataFolder extends Context.Service<
  DataFolder,
  {
    /** Absolute, without symbolic links. */
    readonly path: string
    readonly run: string
    readonly nats: string
  }
>()("almanac/adapters/DataFolder") {
  /**
   * Creates the folder if needed, locks it, and unlocks it with the scope. Fails with
   * DataFolderUnusable if a restore is unfinished. A lasting holder removes partial files of killed
   * processes.
   */
  static readonly layer = (data_dir: string, use: LockKind = "lasting") =>
    Layer.effect(
      DataFolder,
      Effect.tap(lockDataFolder(data_dir, use), ({ path }) =>
        existsSync(join(path, restoring_file))
          ? Effect.fail(unfinishedRestore(path))
          : use === "lasting"
            ? clearPartials(path)
            : Effect.void,
      ),
    )

  /** The folder for a restore, which may be unfinished. */
  static readonly restored = (data_dir: string) =>
    Layer.effect(DataFolder, lockDataFolder(data_dir))
}

/** Duration of the lock: a server keeps it; most commands end within a second or two. */
export type LockKind = "lasting" | "brief"

/** File that exists while a restore is unfinished (docs/decisions/0143). */
export const restoring_file = "restoring.json"

const clearPartials = (path: string) =>
  Effect.try({ try: () => removePartials(path), catch: (cause) => unusable(path, cause) })

const unfinishedRestore = (path: string) =>
  new DataFolderUnusable({
    message: `A restore into ${path} was not finished: repeat \`almanac restore-state\`.`,
    path,
    reason: restoring_file,
  })

/**
 * How long a start waits for a command that holds the folder, in milliseconds: `doctor` runs its
 * own nats-server for about a second if the log is short.
 */
const brief_ms_max = 10_000
/** Retry interval in milliseconds. */
const retry_ms = 50

/** Accessible by the owner only: the folder contains credentials and tenants' data. */
const folder_mode = 0o700
const file_mode = 0o600

/**
 * Creates `data_dir` with its folders (0700) and holds the lock until the scope closes. It is a
 * POSIX lock through SQLite, so the kernel releases it when the process dies, and children do not
 * inherit it. No other code may open `run/lock.sqlite`: closing any descriptor of it in this
 * process would release the lock. Waits for a brief holder only, and for a few seconds. Fails
 * with DataFolderLocked or DataFolderUnusable.
 */
export const lockDataFolder = (data_dir: string, use: LockKind = "lasting") =>
  Effect.andThen(releaseReserve(data_dir), lockFolder(data_dir, ["run", "nats"], use))

/** Like `lockDataFolder`, with these folders only: the lock is in `run`. */
export const lockFolder = Effect.fnUntraced(function* (
  path: string,
  subfolders: ReadonlyArray<"run" | "nats">,
  use: LockKind = "lasting",
) {
  const folder = yield* makeFolders(resolve(path), subfolders)
  const acquire = Effect.acquireRelease(tryLock(folder, use), (lock) =>
    Effect.sync(() => release(folder, lock)),
  )
  const until_ms = (yield* Clock.currentTimeMillis) + brief_ms_max
  let has_warned = false
  const waitForBrief = Effect.fnUntraced(function* (failure: DataFolderLocked) {
    const is_over = (yield* Clock.currentTimeMillis) >= until_ms
    if (is_over || !isBrief(folder)) return yield* failure
    if (!has_warned) {
      const holder = `${processText(failure.pid)}, which is stopping`
      yield* Effect.logWarning(`${folder.path} is in use by ${holder}; waiting until it is free.`)
    }
    has_warned = true
    yield* Effect.sleep(retry_ms)
    return false
  })
  yield* Effect.as(acquire, true).pipe(
    Effect.catchTag("DataFolderLocked", waitForBrief),
    Effect.repeat({ until: (is_held) => is_held }),
  )
  return folder
})

/**
 * Whether the holder is brief. A new holder may not have written its note yet, and the note may be
 * from a killed process.
 */
const isBrief = (folder: Folder) => {
  const note = noteOf(folder)
  return note === undefined || note.use === "brief" || !isRunning(note.pid)
}

const isRunning = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    // EPERM: the process exists and belongs to another user.
    return Predicate.hasProperty(cause, "code") && cause.code === "EPERM"
  }
}

type Folder = DataFolder["Service"]

const pidFile = (folder: Folder) => join(folder.run, "almanac.pid")

const makeFolders = (path: string, subfolders: ReadonlyArray<"run" | "nats">) =>
  Effect.try({
    try: (): Folder => {
      makeFolder(path, folder_mode)
      const real_path = realpathSync(path)
      restrictEmpty(real_path)
      const folder = { path: real_path, run: join(real_path, "run"), nats: join(real_path, "nats") }
      for (const name of subfolders) {
        if (process.getuid?.() === 0) checkOwner(real_path, folder[name])
        mkdirSync(folder[name], { recursive: true, mode: folder_mode })
        const [owner, ours] = [statSync(folder[name]).uid, ownerIn(folder[name])]
        if (owner !== ours) throw wrongOwner(real_path, owner, ours)
      }
      return folder
    },
    catch: (cause) => (cause instanceof DataFolderUnusable ? cause : unusable(path, cause)),
  })

/** Restricts the mode of an empty folder, which may have been created with a permissive umask. */
const restrictEmpty = (folder: string) => {
  if (statSync(folder).uid !== process.getuid?.() || readdirSync(folder).length > 0) return
  chmodSync(folder, folder_mode)
}

/** The owner of files created there; rejects a link left by another user. */
const ownerIn = (folder: string) => {
  const probe = join(folder, `.probe-${process.pid}`)
  rmSync(probe, { force: true })
  writeFileSync(probe, "", { mode: file_mode, flag: "wx" })
  const { uid } = statSync(probe)
  rmSync(probe)
  return uid
}

/** Whether `path` is root's own when used by root, and not a link of another user. */
const checkOwner = (real_path: string, path: string) => {
  const owner = lstatSync(existsSync(path) ? path : real_path).uid
  const ours = ownerIn(real_path)
  if (owner !== ours) throw wrongOwner(real_path, owner, ours)
}

/** Root may write everywhere, but the folder's owner could not read root's files. */
const wrongOwner = (path: string, owner: number, ours: number) =>
  new DataFolderUnusable({
    message:
      `${path} belongs to user ${owner}, who could not read files of user ${ours}: run this ` +
      "command " +
      `as that user, or while its server runs, or change the owner with chown -R ${ours}.`,
    path,
    reason: `belongs to user ${owner}`,
  })

const tryLock = (folder: Folder, use: LockKind) =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(lock(folder, use))
    } catch (cause) {
      const is_busy = cause instanceof Sqlite.SqliteError && cause.code.startsWith("SQLITE_BUSY")
      return Effect.fail(is_busy ? lockedFailure(folder) : unusable(folder.path, cause))
    }
  })

const lock = (folder: Folder, use: LockKind) => {
  const database = new Sqlite(join(folder.run, "lock.sqlite"), { timeout: 0 })
  try {
    database.pragma("locking_mode = EXCLUSIVE")
    database.exec("BEGIN EXCLUSIVE")
    const new_file = `${pidFile(folder)}.new`
    const note = use === "brief" ? `${process.pid}\n${use}\n` : `${process.pid}\n`
    writeFileSync(new_file, note, { mode: file_mode })
    renameSync(new_file, pidFile(folder))
  } catch (cause) {
    database.close()
    throw cause
  }
  return database
}

const release = (folder: Folder, database: Sqlite.Database) => {
  rmSync(pidFile(folder), { force: true })
  database.close()
}

const lockedFailure = (folder: Folder) => {
  const pid = noteOf(folder)?.pid ?? null
  return new DataFolderLocked({
    message:
      `${folder.path} is in use by ${processText(pid)}. Stop it first, ` +
      "or use another folder with ALMANAC_DATA_DIR.",
    path: folder.path,
    pid,
  })
}

const processText = (pid: number | null) => (pid === null ? "another process" : `process ${pid}`)

/** The holder's note: its process id, and a second line if it is brief. */
const noteOf = (folder: Folder): { readonly pid: number; readonly use: LockKind } | undefined => {
  try {
    const [first = "", second] = readFileSync(pidFile(folder), "utf8").split("\n")
    const pid = Number.parseInt(first, 10)
    if (!Number.isSafeInteger(pid)) return undefined
    return { pid, use: second === "brief" ? "brief" : "lasting" }
  } catch {
    return undefined
  }
}

const unusable = (path: string, cause: unknown) => {
  const reason = causeText(cause)
  return new DataFolderUnusable({
    message:
      `The data folder ${path} cannot be used: ${reason}. Choose another one with ` +
      `ALMANAC_DATA_DIR.`,
    path,
    reason,
  })
}

/** The data folder: made, locked for one process, and given to what writes into it. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join, resolve } from "node:path"
import Sqlite from "better-sqlite3"
import { Context, Effect, Layer, Schema } from "effect"

/** Another process holds the data folder; the message says which one and what to do. */
export class DataFolderLocked extends Schema.TaggedError<DataFolderLocked>()("DataFolderLocked", {
  message: Schema.String,
  path: Schema.String,
  /** Null when the holder has not written its process id yet. */
  pid: Schema.NullOr(Schema.Int),
}) {}

/** The data folder cannot be made or written; the message is one line for the operator. */
export class DataFolderUnusable extends Schema.TaggedError<DataFolderUnusable>()(
  "DataFolderUnusable",
  { message: Schema.String, path: Schema.String, reason: Schema.String },
) {}

/**
 * The data folder of this process, held exclusively for as long as the layer lives. What must
 * never be run twice on one folder (nats-server takes no lock of its own) asks for this service.
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
   * Makes the folder where needed, locks it, and lets go of it with the scope. A folder in which a
   * restore was begun and not finished is DataFolderUnusable.
   */
  static readonly layer = (data_dir: string) =>
    Layer.effect(
      DataFolder,
      Effect.tap(lockDataFolder(data_dir), ({ path }) =>
        existsSync(join(path, restoring_file)) ? Effect.fail(halfRestored(path)) : Effect.void,
      ),
    )

  /** The folder of a restore, which alone may finish it. */
  static readonly restored = (data_dir: string) =>
    Layer.effect(DataFolder, lockDataFolder(data_dir))
}

/** In a data folder for as long as a restore is under way (docs/decisions/0143). */
export const restoring_file = "restoring.json"

const halfRestored = (path: string) =>
  new DataFolderUnusable({
    message: `In ${path} a restore was begun and not finished: repeat \`almanac restore-state\`.`,
    path,
    reason: restoring_file,
  })

/** Only the owner may look inside: the folder holds credentials and what tenants stored. */
const folder_mode = 0o700
const file_mode = 0o600

/**
 * Makes `data_dir` with its folders (0700) and holds the lock until the scope closes. The lock is
 * a POSIX lock inside SQLite, so that it dies with the process, whatever killed it, and no child
 * inherits it. Nothing else may open `run/lock.sqlite`: closing any descriptor of it in this
 * process would let go of the lock. Fails with DataFolderLocked or DataFolderUnusable.
 */
export const lockDataFolder = (data_dir: string) => lockFolder(data_dir, ["run", "nats"])

/** As `lockDataFolder`, with no more folders than these: the lock is in `run`. */
export const lockFolder = Effect.fnUntraced(function* (
  path: string,
  inner: ReadonlyArray<"run" | "nats">,
) {
  const folder = yield* makeFolders(resolve(path), inner)
  yield* Effect.acquireRelease(hold(folder), (held) => Effect.sync(() => letGo(folder, held)))
  return folder
})

type Folder = DataFolder["Service"]

const pidFile = (folder: Folder) => join(folder.run, "almanac.pid")

const makeFolders = (path: string, inner: ReadonlyArray<"run" | "nats">) =>
  Effect.try({
    try: (): Folder => {
      mkdirSync(path, { recursive: true, mode: folder_mode })
      const real = realpathSync(path)
      const folder = { path: real, run: join(real, "run"), nats: join(real, "nats") }
      for (const name of inner) {
        if (process.getuid?.() === 0) mayMake(real, folder[name])
        mkdirSync(folder[name], { recursive: true, mode: folder_mode })
        const [owner, ours] = [statSync(folder[name]).uid, ownerIn(folder[name])]
        if (owner !== ours) throw ofAnother(real, owner, ours)
      }
      return folder
    },
    catch: (cause) => (cause instanceof DataFolderUnusable ? cause : unusable(path, cause)),
  })

/** Whose a file is that we make there; it is not made through a link that another has left. */
const ownerIn = (folder: string) => {
  const probe = join(folder, `.probe-${process.pid}`)
  rmSync(probe, { force: true })
  writeFileSync(probe, "", { mode: file_mode, flag: "wx" })
  const { uid } = statSync(probe)
  rmSync(probe)
  return uid
}

/** Whether what root uses or makes at `path` is root's own, and no link of another user's. */
const mayMake = (real: string, path: string) => {
  const owner = lstatSync(existsSync(path) ? path : real).uid
  const ours = ownerIn(real)
  if (owner !== ours) throw ofAnother(real, owner, ours)
}

/** Root may write everywhere; whose folder it is could not read what root leaves there. */
const ofAnother = (path: string, owner: number, ours: number) =>
  new DataFolderUnusable({
    message:
      `${path} belongs to user ${owner}, who could not read what user ${ours} makes in it: run ` +
      `this as that user, or while its server runs; or make it yours with chown -R ${ours}.`,
    path,
    reason: `belongs to user ${owner}`,
  })

const hold = (folder: Folder) =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(lock(folder))
    } catch (cause) {
      const busy = cause instanceof Sqlite.SqliteError && cause.code.startsWith("SQLITE_BUSY")
      return Effect.fail(busy ? locked(folder) : unusable(folder.path, cause))
    }
  })

const lock = (folder: Folder) => {
  const database = new Sqlite(join(folder.run, "lock.sqlite"), { timeout: 0 })
  try {
    database.pragma("locking_mode = EXCLUSIVE")
    database.exec("BEGIN EXCLUSIVE")
    const fresh = `${pidFile(folder)}.new`
    writeFileSync(fresh, `${process.pid}\n`, { mode: file_mode })
    renameSync(fresh, pidFile(folder))
  } catch (cause) {
    database.close()
    throw cause
  }
  return database
}

const letGo = (folder: Folder, held: Sqlite.Database) => {
  rmSync(pidFile(folder), { force: true })
  held.close()
}

const locked = (folder: Folder) => {
  const pid = holder(folder)
  const who = pid === null ? "another process" : `process ${pid}`
  return new DataFolderLocked({
    message:
      `${folder.path} is in use by ${who}. Stop it first, ` +
      "or give this one a folder of its own with ALMANAC_DATA_DIR.",
    path: folder.path,
    pid,
  })
}

const holder = (folder: Folder) => {
  try {
    const pid = Number.parseInt(readFileSync(pidFile(folder), "utf8"), 10)
    return Number.isSafeInteger(pid) ? pid : null
  } catch {
    return null
  }
}

const unusable = (path: string, cause: unknown) => {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new DataFolderUnusable({
    message: `The data folder ${path} cannot be used: ${reason}. Choose one with ALMANAC_DATA_DIR.`,
    path,
    reason,
  })
}

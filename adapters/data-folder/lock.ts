/** The data folder: made, locked for one process, and given to what writes into it. */
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
   * restore was begun and not finished is DataFolderUnusable. Who has it for long removes what a
   * process that was killed has left half written.
   */
  static readonly layer = (data_dir: string, use: Use = "lasting") =>
    Layer.effect(
      DataFolder,
      Effect.tap(lockDataFolder(data_dir, use), ({ path }) =>
        existsSync(join(path, restoring_file))
          ? Effect.fail(halfRestored(path))
          : use === "lasting"
            ? cleared(path)
            : Effect.void,
      ),
    )

  /** The folder of a restore, which alone may finish it. */
  static readonly restored = (data_dir: string) =>
    Layer.effect(DataFolder, lockDataFolder(data_dir))
}

/** What the folder is held for: a server lasts; most verbs end by themselves in a second or two. */
export type Use = "lasting" | "brief"

/** In a data folder for as long as a restore is under way (docs/decisions/0143). */
export const restoring_file = "restoring.json"

const cleared = (path: string) =>
  Effect.try({ try: () => removePartials(path), catch: (cause) => unusable(path, cause) })

const halfRestored = (path: string) =>
  new DataFolderUnusable({
    message: `In ${path} a restore was begun and not finished: repeat \`almanac restore-state\`.`,
    path,
    reason: restoring_file,
  })

/**
 * How long who begins waits for a verb that holds the folder, in milliseconds: `doctor` starts and
 * ends a nats-server of its own, a second where the log is short.
 */
const brief_ms_max = 10_000
/** How often it is tried meanwhile, in milliseconds. */
const look_ms = 50

/** Only the owner may look inside: the folder holds credentials and what tenants stored. */
const folder_mode = 0o700
const file_mode = 0o600

/**
 * Makes `data_dir` with its folders (0700) and holds the lock until the scope closes. The lock is
 * a POSIX lock inside SQLite, so that it dies with the process, whatever killed it, and no child
 * inherits it. Nothing else may open `run/lock.sqlite`: closing any descriptor of it in this
 * process would let go of the lock. Waits some seconds for a brief holder, for no other: fails with
 * DataFolderLocked or DataFolderUnusable.
 */
export const lockDataFolder = (data_dir: string, use: Use = "lasting") =>
  Effect.andThen(releaseReserve(data_dir), lockFolder(data_dir, ["run", "nats"], use))

/** As `lockDataFolder`, with no more folders than these: the lock is in `run`. */
export const lockFolder = Effect.fnUntraced(function* (
  path: string,
  inner: ReadonlyArray<"run" | "nats">,
  use: Use = "lasting",
) {
  const folder = yield* makeFolders(resolve(path), inner)
  const held = Effect.acquireRelease(hold(folder, use), (lock) =>
    Effect.sync(() => letGo(folder, lock)),
  )
  const until_ms = (yield* Clock.currentTimeMillis) + brief_ms_max
  let is_told = false
  const waits = Effect.fnUntraced(function* (refusal: DataFolderLocked) {
    const is_over = (yield* Clock.currentTimeMillis) >= until_ms
    if (is_over || !isBrief(folder)) return yield* refusal
    if (!is_told) {
      const who = `${whose(refusal.pid)}, which ends soon`
      yield* Effect.logWarning(`${folder.path} is in use by ${who}: waiting for it.`)
    }
    is_told = true
    yield* Effect.sleep(look_ms)
    return false
  })
  yield* Effect.as(held, true).pipe(
    Effect.catchTag("DataFolderLocked", waits),
    Effect.repeat({ until: (is_held) => is_held }),
  )
  return folder
})

/**
 * Whether the holder ends by itself. Who took the lock a moment ago has not said so yet, and what
 * is written there may be of a process that was killed.
 */
const isBrief = (folder: Folder) => {
  const said = noteOf(folder)
  return said === undefined || said.use === "brief" || !isAlive(said.pid)
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    // Another user's cannot be asked, and is there.
    return Predicate.hasProperty(cause, "code") && cause.code === "EPERM"
  }
}

type Folder = DataFolder["Service"]

const pidFile = (folder: Folder) => join(folder.run, "almanac.pid")

const makeFolders = (path: string, inner: ReadonlyArray<"run" | "nats">) =>
  Effect.try({
    try: (): Folder => {
      makeFolder(path, folder_mode)
      const real = realpathSync(path)
      closeEmpty(real)
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

/** It may have been made for this, by a shell that lets others look into it. */
const closeEmpty = (folder: string) => {
  if (statSync(folder).uid !== process.getuid?.() || readdirSync(folder).length > 0) return
  chmodSync(folder, folder_mode)
}

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

const hold = (folder: Folder, use: Use) =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(lock(folder, use))
    } catch (cause) {
      const busy = cause instanceof Sqlite.SqliteError && cause.code.startsWith("SQLITE_BUSY")
      return Effect.fail(busy ? locked(folder) : unusable(folder.path, cause))
    }
  })

const lock = (folder: Folder, use: Use) => {
  const database = new Sqlite(join(folder.run, "lock.sqlite"), { timeout: 0 })
  try {
    database.pragma("locking_mode = EXCLUSIVE")
    database.exec("BEGIN EXCLUSIVE")
    const fresh = `${pidFile(folder)}.new`
    const note = use === "brief" ? `${process.pid}\n${use}\n` : `${process.pid}\n`
    writeFileSync(fresh, note, { mode: file_mode })
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
  const pid = noteOf(folder)?.pid ?? null
  return new DataFolderLocked({
    message:
      `${folder.path} is in use by ${whose(pid)}. Stop it first, ` +
      "or give this one a folder of its own with ALMANAC_DATA_DIR.",
    path: folder.path,
    pid,
  })
}

const whose = (pid: number | null) => (pid === null ? "another process" : `process ${pid}`)

/** What the holder has written: its process id, and on a second line that it is brief. */
const noteOf = (folder: Folder): { readonly pid: number; readonly use: Use } | undefined => {
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
    message: `The data folder ${path} cannot be used: ${reason}. Choose one with ALMANAC_DATA_DIR.`,
    path,
    reason,
  })
}

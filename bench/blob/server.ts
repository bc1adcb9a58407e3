/** What takes part in the blob suite: a server of 127.0.0.1 that stores blobs. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, open } from "node:fs/promises"
import { connect } from "node:net"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { causeText } from "#schemas/cause-text.ts"
import { findTree, type TreeName, treeEnvironment, trees } from "../../launcher/trees.mjs"
import { type BlobRequest, bodyBytes, httpHead, unique_mark } from "./request.ts"

export interface BlobServer {
  readonly protocol: "http" | "resp"
  readonly port: number
  readonly put: (blob_bytes: number) => BlobRequest
  /** A put of the same as base64 in JSON, where it has one. */
  readonly putJson?: (blob_bytes: number) => BlobRequest
  /** Gets what is stored under this key. */
  readonly get: (key: string) => BlobRequest
  /** The keys of blobs that were put under these names and answered so; else they are the names. */
  readonly keysOf?: (answers: ReadonlyArray<string>) => ReadonlyArray<string>
  /** Another port at which the same is got, in a way of its own. */
  readonly other?: { readonly name: string; readonly port: number }
  /** Most bytes that all rounds together may store. */
  readonly room_bytes: number
  /** Makes room after a round of puts, outside of what is timed. */
  readonly clear?: () => Promise<void>
  /** How often it has synced a file, where it counts that itself. */
  readonly syncs?: () => Promise<number>
  readonly stop: () => Promise<void>
}

export const gibibyte = 2 ** 30

/** What a disk store may take of the disk in all rounds with blobs of one size. */
export const disk_room_bytes = 16 * gibibyte

/** A put over HTTP of plain bytes at `path`, in which `unique_mark` is the name. */
export const plainPut =
  (method: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
  (blob_bytes: number): BlobRequest => ({
    blob_bytes,
    form: "plain",
    tail: "",
    head: httpHead(method, path, headers, bodyBytes(blob_bytes, "plain")),
  })

export const json_type = "application/json"

/** A put over HTTP of the same as the base64 `data` of a JSON object. */
export const jsonPut =
  (method: string, path: string, headers: Readonly<Record<string, string>>) =>
  (blob_bytes: number): BlobRequest => {
    const typed = { ...headers, "content-type": json_type }
    const head = httpHead(method, path, typed, bodyBytes(blob_bytes, "json"))
    return { head, blob_bytes, form: "json", tail: "" }
  }

/** A get over HTTP; the key takes the place of `unique_mark`. */
export const plainGet =
  (path: string, headers: Readonly<Record<string, string>> = {}) =>
  (key: string): BlobRequest => ({
    blob_bytes: 0,
    form: "plain",
    tail: "",
    head: httpHead("GET", path.replace(unique_mark, key), headers),
  })

/** Milliseconds until a server must answer, and between two looks. */
const ready_ms_max = 60_000
const look_ms = 50
/** Milliseconds until a server that was told to stop is killed. */
const stop_ms_max = 10_000

/** The tree's environment, or an error that says how to get the programs. */
export const environmentOf = (name: TreeName): NodeJS.ProcessEnv => {
  const tree = findTree(name)
  if (tree === undefined) throw new Error(`${name} is not here: ${trees[name].install_command}`)
  return { ...process.env, ...treeEnvironment(tree) }
}

/** Whether a TCP connection is taken at this port. */
export const listens = async (port: number): Promise<boolean> => {
  const socket = connect(port, "127.0.0.1")
  try {
    await once(socket, "connect")
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

export interface Program {
  /** Its folder, which is made; its output goes to `<name>.log` there. */
  readonly folder: string
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly environment: NodeJS.ProcessEnv
  readonly isReady: () => Promise<boolean>
}

/** Starts a server that ends with this process, and waits until it is ready; answers its end. */
export const startProgram = async (program: Program): Promise<() => Promise<void>> => {
  await mkdir(program.folder, { recursive: true })
  const log_path = join(program.folder, `${program.name}.log`)
  const log = await open(log_path, "a")
  const tied = ["--pdeathsig", "KILL", program.command, ...program.args]
  const child = spawn("setpriv", tied, {
    cwd: program.folder,
    env: program.environment,
    stdio: ["ignore", log.fd, log.fd],
  })
  const failed = new Promise<never>((_, reject) => child.once("error", reject))
  const stop = () => end(child)
  try {
    await Promise.race([failed, ready(child, program)])
  } catch (cause) {
    await stop()
    const said = (await log.stat()).size > 0 ? `, see ${log_path}` : ""
    const why = causeText(cause)
    throw new Error(`${program.name}: ${why}${said}`, { cause })
  } finally {
    await log.close()
  }
  return stop
}

const ready = async (child: ChildProcess, { isReady }: Program) => {
  const late = performance.now() + ready_ms_max
  while (!(await isReady())) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error("it ended")
    if (performance.now() > late) throw new Error("it did not answer in time")
    await pause(look_ms)
  }
}

const end = async (child: ChildProcess) => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, "exit")
  child.kill("SIGTERM")
  const timer = setTimeout(() => child.kill("SIGKILL"), stop_ms_max)
  await ended
  clearTimeout(timer)
}

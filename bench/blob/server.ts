/** A contestant of the blob suite: a server on 127.0.0.1 that stores blobs. */
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
  /** The same put as base64 in JSON, if the server supports it. */
  readonly putJson?: (blob_bytes: number) => BlobRequest
  /** Gets the blob with this key. */
  readonly get: (key: string) => BlobRequest
  /** The keys in the responses to puts; if absent, the names are the keys. */
  readonly keysOf?: (answers: ReadonlyArray<string>) => ReadonlyArray<string>
  /** Another port that serves the same gets in a different way. */
  readonly other?: { readonly name: string; readonly port: number }
  /** Maximum bytes that all rounds together may store. */
  readonly room_bytes: number
  /** Frees space after a round of puts; not timed. */
  readonly clear?: () => Promise<void>
  /** Number of file syncs so far, if the server counts them. */
  readonly syncs?: () => Promise<number>
  readonly stop: () => Promise<void>
}

export const gibibyte = 2 ** 30

/** Maximum disk space of a store for all rounds with blobs of one size. */
export const disk_room_bytes = 16 * gibibyte

/** An HTTP put of plain bytes at `path`, in which `unique_mark` is the name. */
export const plainPut =
  (method: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
  (blob_bytes: number): BlobRequest => ({
    blob_bytes,
    form: "plain",
    tail: "",
    head: httpHead(method, path, headers, bodyBytes(blob_bytes, "plain")),
  })

export const json_type = "application/json"

/** An HTTP put of the same bytes as the base64 `data` of a JSON object. */
export const jsonPut =
  (method: string, path: string, headers: Readonly<Record<string, string>>) =>
  (blob_bytes: number): BlobRequest => {
    const typed = { ...headers, "content-type": json_type }
    const head = httpHead(method, path, typed, bodyBytes(blob_bytes, "json"))
    return { head, blob_bytes, form: "json", tail: "" }
  }

/** An HTTP get; the key replaces `unique_mark`. */
export const plainGet =
  (path: string, headers: Readonly<Record<string, string>> = {}) =>
  (key: string): BlobRequest => ({
    blob_bytes: 0,
    form: "plain",
    tail: "",
    head: httpHead("GET", path.replace(unique_mark, key), headers),
  })

/** Milliseconds for a server to become ready, and between two polls. */
const ready_ms_max = 60_000
const look_ms = 50
/** Milliseconds for a server to stop before it is killed. */
const stop_ms_max = 10_000

/** The tree's environment, or an error that says how to install the programs. */
export const environmentOf = (name: TreeName): NodeJS.ProcessEnv => {
  const tree = findTree(name)
  if (tree === undefined) throw new Error(`${name} is not here: ${trees[name].install_command}`)
  return { ...process.env, ...treeEnvironment(tree) }
}

/** Whether this port accepts a TCP connection. */
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
  /** The program's folder, which is created; its output goes to `<name>.log` there. */
  readonly folder: string
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly environment: NodeJS.ProcessEnv
  readonly isReady: () => Promise<boolean>
}

/**
 * Starts a server that exits with this process, and waits until it is ready; returns its stop
 * function.
 */
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
    const message = (await log.stat()).size > 0 ? `, see ${log_path}` : ""
    const why = causeText(cause)
    throw new Error(`${program.name}: ${why}${message}`, { cause })
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

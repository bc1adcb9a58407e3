/** The processes of real OpenStack services: start, readiness and shutdown. */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { Effect, Schedule } from "effect"
import { treeEnvironment } from "../../../../launcher/trees.mjs"
import { baseOf, type Place, programs, type Service } from "./configuration.ts"

/** Debian's own Python, which matches the packages: another version may come first in PATH. */
const python = "/usr/bin/python3"

/** Maximum time until a service responds: it takes a few seconds on a busy machine. */
const ready_s_max = 60
const look_ms = 50
/** Grace period before a process is killed. */
const stop_ms = 5000

/** Ports that were free a moment ago. */
export const freePorts = async (): Promise<Place["ports"]> => {
  const [keystone, barbican, manila] = await Promise.all([freePort(), freePort(), freePort()])
  return { keystone, barbican, manila }
}

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer().once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0))
    })
  })

const environmentOf = ({ folder, tree }: Place, service: Service) => {
  const { PATH = "/usr/bin:/bin" } = process.env
  const of_tree = treeEnvironment(tree)
  const paths = [programs, of_tree.PYTHONPATH].filter((path) => path !== undefined)
  return {
    PATH,
    HOME: join(folder, service),
    ...of_tree,
    PYTHONPATH: paths.join(":"),
    MANILA_FOLDERS: join(folder, "exports"),
  }
}

const start = (place: Place, service: Service, command: string, args: ReadonlyArray<string>) => {
  const folder = join(place.folder, service)
  const log = openSync(join(folder, "log"), "a")
  const env = environmentOf(place, service)
  // The service receives SIGTERM when this process dies, for any reason.
  const tied = ["--pdeathsig", "TERM", "--", command, ...args]
  const child = spawn("setpriv", tied, { cwd: folder, env, stdio: ["ignore", log, log] })
  closeSync(log)
  return child
}

/** The end of a service's log, to explain why it is not running. */
const lastWords = ({ folder }: Place, service: Service) =>
  readFileSync(join(folder, service, "log"), "utf8").slice(-2000)

const commandOf = ({ folder, tree }: Place, service: Service): readonly [string, Array<string>] =>
  service === "manila"
    ? [python, [join(programs, "manila_all.py"), `--config-file=${folder}/manila/manila.conf`]]
    : [join(tree, "usr/bin/uwsgi-core"), ["--ini", join(folder, service, "uwsgi.ini")]]

const ended = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve()
    else child.once("exit", () => resolve())
  })

const stop = async (child: ChildProcess) => {
  child.kill("SIGTERM")
  const timer = setTimeout(() => child.kill("SIGKILL"), stop_ms)
  await ended(child)
  clearTimeout(timer)
}

/** A running service, for the life of the scope; it has responded once. */
export const running = Effect.fnUntraced(function* (place: Place, service: Service) {
  const [command, args] = commandOf(place, service)
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => start(place, service, command, args)),
    (child) => Effect.promise(() => stop(child)),
  )
  const answered = Effect.tryPromise(async () => {
    if (child.exitCode !== null) throw new Error(`${service} ended`)
    await (await fetch(`${baseOf(place, service)}/`)).arrayBuffer()
  })
  yield* answered.pipe(
    Effect.retry({
      schedule: Schedule.spaced(look_ms),
      times: (ready_s_max * 1000) / look_ms,
      while: () => child.exitCode === null,
    }),
    Effect.mapError(() => new Error(`${service} did not start: ${lastWords(place, service)}`)),
  )
  return { stop: Effect.promise(() => stop(child)) }
})

/** Runs one of the tree's Python programs until it exits. */
export const pythonRun = (place: Place, service: Service, args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const child = start(place, service, python, args)
    await ended(child)
    if (child.exitCode !== 0) throw new Error(`${args[0]}: ${lastWords(place, service)}`)
  })

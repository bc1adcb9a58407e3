/** `almanac agent`: a worker on this machine, started by hand or when a machine boots. */

import { Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { v7 } from "uuid"
import { logging } from "#adapters/logging.ts"
import { default_image } from "#adapters/share-protection/compute-images.ts"
import { newWorkerKeys } from "#adapters/share-protection/worker-users.ts"
import { telemetry } from "#adapters/telemetry.ts"
import { connectPlain } from "#bus"
import { summaries } from "#cli/client/summaries.ts"
import { instance } from "#cli/instance.ts"
import { settings, sources } from "#cli/root.ts"
import type { Settings } from "#schemas/settings.ts"
import { DomainId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { Name } from "#schemas/share-protection/text.ts"
import type { AgentCredentials } from "#server/agent/credentials.ts"
import { workerProject } from "#server/agent/ports.ts"
import { runAgent } from "#server/agent/run.ts"
import { version } from "#server/program.ts"
import { requestEntry } from "#server/share-protection/worker-entry.ts"

/** No server to work for; the message names the next step. */
class NoServer extends Schema.TaggedError<NoServer>()("NoServer", { message: Schema.String }) {}

const flag = <A extends string>(name: string, schema: Schema.Codec<A, string>, what: string) =>
  Flag.String(name).pipe(Flag.withSchema(schema), Flag.withDescription(what), Flag.optional)

const flags = {
  worker_id: flag("worker-id", WorkerId, "Worker id; default: a new UUIDv7"),
  project_id: flag("project-id", ProjectId, "Project of the worker; default: the worker project"),
  domain_id: flag("domain-id", DomainId, "Run only jobs of this domain; default: of any domain"),
  image: flag("image", Name, `Image of the worker; default: ${default_image}`),
}

/**
 * Credentials for the bus: those of the settings for an external bus, or a separate bus user that
 * the server on this machine admits.
 */
const busCredentials = Effect.fnUntraced(function* (settings: Settings, worker_id: WorkerId) {
  const { nats, data } = settings
  if (nats.url !== "") {
    const servers = nats.url.split(",").map((server) => server.trim())
    const own: AgentCredentials["nats"] = { servers, seed: null }
    return own
  }
  const running = yield* instance(settings)
  if (running === undefined) {
    const message = `No server runs on ${data.dir}: start one, or set nats.url to another bus.`
    return yield* new NoServer({ message })
  }
  const { url, user, password } = running.nats
  const servers = url.split(",")
  const { public_key, seed } = yield* newWorkerKeys
  const connection = yield* connectPlain({ servers, login: { user, password } })
  yield* requestEntry(connection, { worker_id, public_key })
  const admitted: AgentCredentials["nats"] = { servers, seed }
  return admitted
}, Effect.scoped)

export const agent = Command.make(
  "agent",
  flags,
  Effect.fn(function* (input) {
    const read = yield* settings
    const worker_id = Option.getOrElse(input.worker_id, () => WorkerId.make(v7()))
    const work = Effect.gen(function* () {
      const nats = yield* busCredentials(read, worker_id)
      const credentials: AgentCredentials = {
        worker_id,
        project_id: Option.getOrUndefined(input.project_id) ?? (yield* workerProject(read)),
        domain_id: Option.getOrNull(input.domain_id),
        image_version: Option.getOrElse(input.image, () => default_image),
        nats,
        sources: yield* sources,
      }
      return yield* runAgent(credentials, read)
    })
    yield* work.pipe(
      Effect.annotateLogs({ worker_id }),
      Effect.provide([logging(() => read.log.level), telemetry(read, version, "almanac-agent")]),
    )
  }),
).pipe(
  Command.withDescription(summaries.agent),
  Command.withExamples([
    { command: "almanac agent", description: "Run jobs of the server on this data folder" },
    {
      command: "almanac agent --set nats.url=tls://bus.example:4222",
      description: "Run jobs of a server on another machine",
    },
  ]),
)

/** Runs an agent over the bus in this process: a worker until its scope closes. */
import { randomBytes } from "node:crypto"
import { hostname } from "node:os"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer, Redacted, Schema } from "effect"
import { type AgentOptions, startAgent } from "#actors/share-protection/agent.ts"
import { agentsNats } from "#adapters/share-protection/agents-nats.ts"
import { publishedLiveWorkers } from "#adapters/share-protection/live-workers-nats.ts"
import { workerCommands } from "#adapters/share-protection/worker-commands.ts"
import { inboxOf } from "#adapters/share-protection/worker-users.ts"
import { connectPlain } from "#bus"
import type { Settings } from "#schemas/settings.ts"
import type { AgentCredentials } from "#server/agent/credentials.ts"
import { buckets, engine, engineFolders, tenants } from "#server/agent/ports.ts"
import { natsLogin } from "#server/nats-login.ts"

/** The worker was rejected or dismissed; the message has the reason. */
export class AgentDismissed extends Schema.TaggedError<AgentDismissed>()("AgentDismissed", {
  message: Schema.String,
}) {}

/** Heartbeats within the deadline after which a worker counts as dead: two may be lost. */
const heartbeats_per_deadline = 3
/** DECISIONS, document 2, engine: at least 128 random bits. */
const password_bytes = 32
const hostname_chars_max = 255

const optionsOf = (credentials: AgentCredentials, settings: Settings): AgentOptions => {
  const { worker_id, project_id, domain_id, image_version } = credentials
  const { api, conductor, engine, worker } = settings
  return {
    worker_id,
    registration: {
      project_id,
      domain_id,
      image_version,
      hostname: hostname().slice(0, hostname_chars_max),
      capacity_slots: worker.capacity_slots,
    },
    shape: api.shape,
    require_fips_profile: engine.require_fips_profile,
    subprocess_timeout_seconds: engine.subprocess_timeout,
    max_command_duration_seconds: worker.max_command_duration_seconds,
    heartbeat_interval_seconds:
      conductor.worker_heartbeat_deadline_seconds / heartbeats_per_deadline,
    new_password: Effect.sync(() =>
      Redacted.make(randomBytes(password_bytes).toString("base64url")),
    ),
    scratch_dir: engineFolders(settings).scratch_dir,
  }
}

const connect = ({ worker_id, nats }: AgentCredentials, settings: Settings) =>
  connectPlain({
    ...(nats.seed === null ? natsLogin(settings) : { login: { seed: nats.seed } }),
    servers: nats.servers,
    inbox: inboxOf(worker_id),
    is_new: nats.seed !== null,
  })

/** Works until it is interrupted; fails if it is rejected or dismissed. */
export const runAgent = Effect.fnUntraced(function* (
  credentials: AgentCredentials,
  settings: Settings,
) {
  const connection = yield* connect(credentials, settings)
  const services = yield* Layer.build(
    Layer.mergeAll(
      workerCommands(connection, credentials.worker_id),
      agentsNats(connection, settings.worker),
      publishedLiveWorkers(connection),
      engine(settings),
      buckets(settings),
      tenants(settings),
      NodeFileSystem.layer,
    ),
  )
  const { dismissed } = yield* startAgent(optionsOf(credentials, settings)).pipe(
    Effect.provideContext(services),
    Effect.mapError(({ detail }) => new AgentDismissed({ message: detail })),
  )
  yield* Effect.logDebug("The worker is ready for jobs.")
  const { detail } = yield* dismissed
  return yield* new AgentDismissed({ message: detail })
}, Effect.scoped)

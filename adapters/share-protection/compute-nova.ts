/**
 * Machines in Nova, from images in Glance, in the service user's own project.
 *
 * A machine gets its worker id as user data, which every user on it can read and Nova stores, so it
 * contains no secret. The credentials for the bus and the cloud are in the image.
 *
 * Source: document 2 §8 conductor.worker_boot_image, §9; decision 0064. Compute API, microversion
 * 2.79; Image API 2.
 */
import { Effect, Schema, Semaphore } from "effect"
import { type Boot, Compute, type Image } from "#actors/share-protection/ports/compute.ts"
import {
  type Call,
  type CloudResponse,
  decodeResponse,
  unexpected,
} from "#adapters/keystone/http.ts"
import type { KeystoneSession } from "#adapters/keystone/session.ts"
import type { Settings } from "#schemas/settings.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

const nova = { service: "Nova" } as const
const glance = { service: "Glance" } as const

/** Supported since OpenStack Train. */
const headers = { "openstack-api-version": "compute 2.79" }

/** Path of the agent's settings in images. */
const config_path = "/etc/almanac/agent.toml"

const Server = Schema.Struct({ id: Schema.String, name: Schema.String, status: Schema.String })
const Servers = Schema.Struct({ servers: Schema.Array(Server) })

const GlanceImage = Schema.Struct({
  id: Schema.String,
  name: Schema.NullOr(Schema.String),
  svc_worker_image: Schema.optionalKey(Schema.String),
  svc_engine_version: Schema.optionalKey(Schema.String),
})
const Images = Schema.Struct({ images: Schema.Array(GlanceImage) })

/** Statuses of a server that is starting; all others but `ACTIVE` mean that it is unusable. */
const booting_statuses = new Set(["BUILD", "REBUILD", "REBOOT", "HARD_REBOOT"])

type Session = KeystoneSession["Service"]

/** Machines for workers, identified by their name. */
export const computeNova = Effect.fnUntraced(function* (
  session: Session,
  { compute }: Pick<Settings, "compute">,
) {
  // Concurrent boots of one worker would create two machines.
  const one_at_a_time = yield* Semaphore.make(1)
  const ensureMachine = Effect.fnUntraced(function* (boot: Boot) {
    const [existing] = yield* serversOf(session, boot.worker_id)
    if (existing?.status === "ERROR") return yield* refusal("Nova could not create the machine.")
    if (existing !== undefined) return
    const image = yield* imageNamed(session, boot.image)
    if (image === undefined) return yield* refusal(`The image ${boot.image} does not exist.`)
    const body = { server: serverOf(compute, boot, image.id) }
    const response = yield* request(session, { method: "POST", path: "/servers", body })
    if (response.status !== 202) return yield* failureOf(response)
  })
  return Compute.of({
    image: (name) =>
      Effect.map(imageNamed(session, name), (found) => found && imageOf(found, name)),
    boot: (boot) => one_at_a_time.withPermit(ensureMachine(boot)),
    destroy: Effect.fnUntraced(function* (worker_id) {
      for (const { id } of yield* serversOf(session, worker_id)) {
        const response = yield* request(session, { method: "DELETE", path: `/servers/${id}` })
        const is_gone = response.status === 204 || response.status === 404
        if (!is_gone) return yield* unexpected(nova, response)
      }
    }),
    find: Effect.fnUntraced(function* (worker_id) {
      const states = (yield* serversOf(session, worker_id)).map(({ status }) => status)
      if (states.includes("ACTIVE")) return "active"
      return states.some((status) => booting_statuses.has(status)) ? "booting" : "gone"
    }),
  })
})

const refusal = (detail: string) => Effect.fail(new WorkerUnavailable({ detail }))

/** Distinguishes permanent refusals by Nova from temporary ones. */
const failureOf = (response: CloudResponse) => {
  if (response.status === 403 || response.status === 413) {
    return refusal(
      "Nova rejects the machine: a quota is exceeded, or the service user lacks permission.",
    )
  }
  if (response.status === 400 || response.status === 404 || response.status === 409) {
    return refusal(
      `Nova rejects the machine (status ${response.status}): check the section [compute].`,
    )
  }
  return Effect.fail(unexpected(nova, response))
}

interface NovaCall extends Pick<Call, "method" | "body"> {
  /** Relative to Nova's endpoint. */
  readonly path: string
}

const request = Effect.fnUntraced(function* (session: Session, { path, ...call }: NovaCall) {
  const url = (yield* session.endpoint("compute")) + path
  return yield* session.sendAsService({ ...nova, ...call, url, headers })
})

const nameOf = (worker_id: WorkerId) => `almanac-worker-${worker_id}`

/**
 * The worker's machines; two if a response was lost. Nova treats the name as a regular expression.
 */
const serversOf = Effect.fnUntraced(function* (session: Session, worker_id: WorkerId) {
  const name = nameOf(worker_id)
  const path = `/servers/detail?name=${encodeURIComponent(`^${name}$`)}`
  const response = yield* request(session, { method: "GET", path })
  if (response.status !== 200) return yield* unexpected(nova, response)
  const { servers } = yield* decodeResponse(Servers, nova, response)
  return servers.filter((server) => server.name === name && !deleted_statuses.has(server.status))
})

const deleted_statuses = new Set(["DELETED", "SOFT_DELETED"])

/** The newest usable image of that name. */
const imageNamed = Effect.fnUntraced(function* (session: Session, name: string) {
  const query = new URLSearchParams({ name, status: "active", sort: "created_at:desc", limit: "1" })
  const url = `${yield* session.endpoint("image")}/v2/images?${query}`
  const response = yield* session.sendAsService({ ...glance, method: "GET", url })
  if (response.status !== 200) return yield* unexpected(glance, response)
  const { images } = yield* decodeResponse(Images, glance, response)
  return images.find((image) => image.name === name)
})

const imageOf = (found: typeof GlanceImage.Type, name: string): Image => ({
  name,
  properties: {
    svc_worker_image: found.svc_worker_image === "1" || found.svc_worker_image === "true",
    engine_version: found.svc_engine_version ?? null,
  },
})

/** The request body of the Compute API. */
const serverOf = (
  { flavor, networks, security_groups, key_name }: Settings["compute"],
  boot: Boot,
  image_id: string,
) => ({
  name: nameOf(boot.worker_id),
  imageRef: image_id,
  flavorRef: flavor,
  networks: networks.length === 0 ? "auto" : networks.map((uuid) => ({ uuid })),
  ...(security_groups.length > 0 && { security_groups: security_groups.map((name) => ({ name })) }),
  ...(key_name !== "" && { key_name }),
  metadata: { almanac_worker_id: boot.worker_id },
  user_data: Buffer.from(userData(boot)).toString("base64"),
})

/** Starts the agent through cloud-init, whose YAML also accepts JSON. */
export const userData = ({ worker_id, project_id, domain_id, image }: Boot) => {
  const flags = [
    "--worker-id",
    worker_id,
    "--project-id",
    project_id,
    "--image",
    image,
    ...(domain_id === null ? [] : ["--domain-id", domain_id]),
  ]
  const unit = ["systemd-run", "--unit=almanac-agent", "almanac", "--config", config_path, "agent"]
  return `#cloud-config\n${JSON.stringify({ runcmd: [[...unit, ...flags]] })}\n`
}

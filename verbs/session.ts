/** The bus and the log, for as long as a verb runs. */
import { Effect, Layer, Option } from "effect"
import { DataFolder } from "#adapters/data-lock.ts"
import { findInstance } from "#adapters/instance-file.ts"
import { logJetStream } from "#adapters/log-jetstream.ts"
import { EventsConnection, NatsConnection } from "#adapters/nats-connection.ts"
import { NatsServer } from "#adapters/nats-server.ts"
import type { Settings } from "#schemas/settings.ts"
import { natsLogin } from "#verbs/nats-login.ts"

/** The generation of the log that is written now. */
const log_stream = "ALMANAC_LOG"

/**
 * The locked data folder, and the server of these settings: a child of ours, or the named one.
 * `meanwhile` is done while that starts.
 */
const ownServer = (settings: Settings, meanwhile: Layer.Layer<never> = Layer.empty) => {
  const { data, nats } = settings
  const outside = () => NatsServer.outside({ url: nats.url, ...natsLogin(settings) })
  const server = nats.url === "" ? NatsServer.child({ binary: nats.binary }) : outside()
  return Layer.provideMerge(Layer.merge(server, meanwhile), DataFolder.layer(data.dir))
}

/** The log of these settings over a bus that is there. */
export const log = ({ nats }: Settings) =>
  logJetStream({ stream: log_stream, replicas: nats.replicas })

/** Everything that a process needs which is alone on its data folder. */
export const exclusive = (settings: Settings, meanwhile?: Layer.Layer<never>) =>
  log(settings).pipe(
    Layer.provideMerge(Layer.merge(NatsConnection.layer, EventsConnection.layer)),
    Layer.provideMerge(ownServer(settings, meanwhile)),
  )

/**
 * The log beside a running instance, over its bus; without one, over a server of our own, and then
 * the data folder is locked until the verb ends.
 */
export const beside = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(findInstance(settings.data.dir), (instance) => {
      const server = Option.match(instance, {
        onNone: () => Layer.fresh(ownServer(settings)),
        onSome: ({ nats: { url, user, password } }) =>
          NatsServer.outside({ url, login: { user, password } }),
      })
      return log(settings).pipe(Layer.provide(NatsConnection.layer), Layer.provide(server))
    }),
  )

/**
 * Users that are added to and removed from our own nats-server while it runs. Each is identified by
 * a public key, so the configuration contains no secret.
 */
import { Effect, Schema } from "effect"

export interface BusUser {
  /** Unique among the users of a server. */
  readonly name: string
  /** An nkey: `U` and 55 letters and digits. */
  readonly public_key: string
  /** Lines of a `permissions` block of nats.conf, without its braces. */
  readonly permissions: string
}

/** The server cannot admit another user, or its configuration cannot be written. */
export class BusUserRefused extends Schema.TaggedError<BusUserRefused>()("BusUserRefused", {
  message: Schema.String,
}) {}

export interface BusUsers {
  /** Admits the user with this key only; connections with an earlier key are closed. */
  readonly admit: (user: BusUser) => Effect.Effect<void, BusUserRefused>
  /** Removes the user and closes its connections; no effect if the user does not exist. */
  readonly dismiss: (name: string) => Effect.Effect<void>
}

/** Maximum users of one server: far more than the workers of a machine. */
const users_max = 1000

/** Public key of an nkey user. The check prevents injection into the server's configuration. */
const is_public_key = /^U[A-Z2-7]{55}$/

/** Keeps the list of admitted users; `apply` makes the server reload it. */
export const busUsers = (
  apply: (users: ReadonlyArray<BusUser>) => Effect.Effect<void, BusUserRefused>,
): BusUsers => {
  const users = new Map<string, BusUser>()
  const applied = Effect.suspend(() => apply([...users.values()]))
  const refused = (message: string) => Effect.fail(new BusUserRefused({ message }))
  return {
    admit: (user) =>
      Effect.suspend(() => {
        const { name, public_key } = user
        const before = users.get(name)
        if (before?.public_key === public_key) return Effect.void
        if (!is_public_key.test(public_key))
          return refused("The key is not the public key of a NATS user.")
        if (before === undefined && users.size >= users_max) {
          return refused(`The bus already has the maximum of ${users_max} users.`)
        }
        users.set(name, user)
        const undo = Effect.sync(() => {
          if (before === undefined) users.delete(name)
          else users.set(name, before)
        })
        return Effect.tapError(applied, () => undo)
      }),
    dismiss: (name) =>
      Effect.suspend(() => (users.delete(name) ? applied : Effect.void)).pipe(
        Effect.catch(({ message }) =>
          Effect.logWarning(`A user of the bus could not be removed: ${message}`),
        ),
      ),
  }
}

/** The user's line in nats.conf. */
export const userText = ({ public_key, permissions }: BusUser) =>
  `{ nkey: ${public_key}, permissions: {\n${permissions} } }`

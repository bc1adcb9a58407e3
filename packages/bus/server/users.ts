/**
 * Users of a nats-server of our own that come and go while it runs. Each is known by a public key,
 * so its configuration holds no secret.
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
  /** Admits the user by this key alone; connections with an earlier key of it are closed. */
  readonly admit: (user: BusUser) => Effect.Effect<void, BusUserRefused>
  /** Removes the user and closes its connections; without effect if there is no such user. */
  readonly dismiss: (name: string) => Effect.Effect<void>
}

/** Users at one server: far above the workers of a machine. */
const users_max = 1000

/** The public key of an nkey user: nothing else may get into the server's configuration. */
const is_public_key = /^U[A-Z2-7]{55}$/

/** Remembers the admitted users; `apply` makes the server read them. */
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
        if (!is_public_key.test(public_key)) return refused("That is no public key of a user.")
        if (before === undefined && users.size >= users_max) {
          return refused(`The bus has ${users_max} users and admits no more.`)
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
        Effect.catch(({ message }) => Effect.logWarning(`A user of the bus remains: ${message}`)),
      ),
  }
}

/** The line of the user in nats.conf. */
export const userText = ({ public_key, permissions }: BusUser) =>
  `{ nkey: ${public_key}, permissions: {\n${permissions} } }`

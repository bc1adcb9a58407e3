/** An issued token: absent → active → revoked. Source: decision 0153. */
import { DateTime, Effect, Struct } from "effect"
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import { type Log, parseStream, type Recorded } from "#events/log.ts"
import { TokenEvent, TokenIssued, TokenRevoked } from "#events/system/token.ts"
import { Conflict, NotFound, TokenRejection } from "#schemas/system/rejection.ts"
import { TokenCommand } from "#schemas/system/token.ts"

type Context = Omit<typeof TokenIssued.Type, "type">

export const machine = setup({
  types: { context: {} as Context, events: {} as TokenEvent },
}).createMachine({
  id: "system.token",
  // The context is empty before the token exists, and is not read then.
  context: {} as Context,
  initial: "absent",
  states: {
    absent: {
      on: {
        TokenIssued: {
          target: "active",
          actions: assign(({ event }) => Struct.omit(event, ["type"])),
        },
      },
    },
    active: { on: { TokenRevoked: { target: "revoked" } } },
    revoked: { type: "final" },
  },
})

export const Token = decider({
  machine,
  version: 1,
  command: TokenCommand,
  event: TokenEvent,
  rejection: TokenRejection,
  propose: {
    IssueToken: (command) => [TokenIssued.make(Struct.omit(command, ["type"]))],
    RevokeToken: () => [TokenRevoked.make({})],
  },
  reject: (_, { type }) =>
    type === "IssueToken"
      ? new Conflict({ detail: "This token already exists." })
      : new NotFound({ detail: "No such token, or it was revoked." }),
})

/** A token that is valid until it expires; times are Unix milliseconds, null: never. */
export interface LivingToken extends Omit<Context, "expires_at"> {
  readonly sha256: string
  readonly kind: "issued"
  readonly created_at: number
  readonly expires_at: number | null
}

const epochMs = (at: string) => DateTime.toEpochMillis(DateTime.makeUnsafe(at))

/** The token after a commit; undefined if it is revoked. */
export const tokenAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Token, recorded), (state): LivingToken | undefined => {
    if (!state.matches("active")) return undefined
    // The decider's state is a snapshot of this file's machine.
    const granted = state.context as Context
    return {
      ...granted,
      kind: "issued",
      sha256: parseStream(recorded.stream).id,
      // An active token has a single commit, the one that issued it.
      created_at: epochMs(recorded.commit.at),
      expires_at: granted.expires_at === null ? null : epochMs(granted.expires_at),
    }
  })

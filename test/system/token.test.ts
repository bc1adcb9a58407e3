import { describe, expect, it } from "vitest"
import { Token } from "#actors/system/token.ts"
import { TokenIssued, TokenRevoked } from "#events/system/token.ts"
import { publishedOf } from "#projections/published-events.ts"
import { published } from "#projections/system/published.ts"
import { IssueToken, RevokeToken } from "#schemas/system/token.ts"
import { roles_max, scopes } from "#schemas/token.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const grant: Omit<typeof IssueToken.Type, "type"> = {
  name: "ci",
  scopes: ["blobs:read"],
  roles: ["member"],
  project_id: "p",
  domain_id: null,
  user_id: "u",
  expires_at: "2026-11-23T01:00:00.000Z",
}
const issued = TokenIssued.make(grant)
const revoked = TokenRevoked.make({})

const states = { absent: [], active: [issued], revoked: [issued, revoked] }

describe("an issued token", () => {
  everyState(Token, states, {
    IssueToken: [
      { command: IssueToken.make(grant), in: { absent: [issued] }, otherwise: "svc.conflict" },
    ],
    RevokeToken: [
      { command: RevokeToken.make({}), in: { active: [revoked] }, otherwise: "svc.not_found" },
    ],
  })
  it("is published with the project of its grant, and without one if it has none", () => {
    const projects = ["p", null].map((project_id) => {
      const context = { ...grant, project_id }
      const events = publishedOf(published, {
        position: 1,
        stream: "system.token.ci",
        hash: "",
        commit: {
          v: 1,
          actor: "test",
          at: "2026-11-22T00:00:00.000Z",
          events: [TokenIssued.make(context), revoked],
          snapshot: { machine: 1, value: "revoked", context },
          commands: [],
          prev: "",
        },
      })
      return events.map(({ event }) => [event.type, event.projectid ?? null])
    })
    expect(projects).toEqual([
      [
        ["token_issued", "p"],
        ["token_revoked", "p"],
      ],
      [
        ["token_issued", null],
        ["token_revoked", null],
      ],
    ])
  })
  it("fits into a commit with the maximum number of grants", () => {
    const longest = "x".repeat(128)
    const largest = TokenIssued.make({
      name: longest,
      scopes,
      roles: Array.from({ length: roles_max }, () => "r".repeat(64)),
      project_id: longest,
      domain_id: longest,
      user_id: longest,
      expires_at: grant.expires_at,
    })
    assertStorable(Token, [largest])
    assertStorable(Token, [largest, revoked])
  })
})

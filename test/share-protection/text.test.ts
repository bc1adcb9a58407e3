import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  DomainId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
  WorkerId,
} from "#schemas/share-protection/id.ts"
import {
  Count,
  HttpUrl,
  Name,
  Reason,
  reasonOf,
  SecretRef,
  TrustId,
} from "#schemas/share-protection/text.ts"
import { longestRef, longestUrl, secretRef, uuid } from "../world/share-protection/samples.ts"

const cases = (
  schema: Schema.Constraint,
  right: ReadonlyArray<unknown>,
  wrong: ReadonlyArray<unknown>,
) => {
  const is = Schema.is(schema)
  const textOf = (value: unknown) => JSON.stringify(value)?.slice(0, 60) ?? "undefined"
  for (const value of right) it(`may be ${textOf(value)}`, () => assert.isTrue(is(value)))
  for (const value of wrong) it(`may not be ${textOf(value)}`, () => assert.isFalse(is(value)))
}

describe("a name", () =>
  cases(
    Name,
    ["a", " a ", "b\u00fccher", "\u{1f4be}", "x".repeat(255), "<b>\"'\\"],
    ["", " ", "\u00a0", "x".repeat(256), "a\nb", "a\u0000", "a\u0085", "a\ud800", 1, null],
  ))

describe("a URL", () =>
  cases(
    HttpUrl,
    [
      "http://a",
      "https://s3.example.org",
      "HTTP://A",
      "http://127.0.0.1:7480",
      "http://[::1]",
      "http://a/b?c=d&e=%20",
      "https://xn--bcher-kva.example/",
      longestUrl(),
    ],
    [
      "",
      "a",
      "//a",
      "http:a",
      "http:///a",
      "http://",
      "http://:80",
      "ftp://a",
      "file:///a",
      "javascript:alert(1)",
      "http://u@a",
      "http://u:p@a",
      "http://@a",
      "http://a#b",
      "http://a#",
      " http://a",
      "http://a ",
      "http://a b",
      "http://a\n",
      "http://a\\b",
      'http://a/"',
      "http://b\u00fccher.example",
      "http://a:65536",
      "http://[::1",
      longestUrl(1),
      null,
    ],
  ))

describe("a secret's href", () =>
  cases(
    SecretRef,
    [
      secretRef(1),
      secretRef(1).toUpperCase().replace("/V1/SECRETS/", "/v1/secrets/"),
      longestRef(),
    ],
    [
      "",
      uuid(1),
      `/v1/secrets/${uuid(1)}`,
      `http://a/secrets/${uuid(1)}`,
      `${secretRef(1)}/payload`,
      `${secretRef(1)}?a`,
      "http://a/v1/secrets/1",
      `http://a/v1/secrets/${"-".repeat(36)}`,
      `http://u:p@a/v1/secrets/${uuid(1)}`,
      `http://a/v1/secrets/${uuid(1)}0`,
      `ftp://a/v1/secrets/${uuid(1)}`,
      longestRef(1),
    ],
  ))

describe("a trust's id", () =>
  cases(
    TrustId,
    ["a", "8a1fd1e3c0d94a4f8d1f2f0f5d1e9b77", uuid(1), "t".repeat(64)],
    ["", "t".repeat(65), "a/b", "a.b", "a b", "..", "\u00e4"],
  ))

describe("a reason", () => {
  cases(Reason, ["", "a\nb", "x".repeat(1024)], ["x".repeat(1025), null])
  it("is truncated to its limit, but not within a character", () => {
    assert.equal(reasonOf("no space"), "no space")
    assert.equal(reasonOf("x".repeat(1025)), "x".repeat(1024))
    assert.equal(reasonOf(`${"x".repeat(1023)}\u{1f4be}`), `${"x".repeat(1023)}\ufffd`)
  })
})

describe("a count", () => cases(Count, [0, 1, 2 ** 53 - 1], [-1, 0.5, 2 ** 53, "1", Number.NaN]))

describe("an id of ours, or of a share", () => {
  for (const schema of [TargetId, PolicyId, ShareId]) {
    cases(
      schema,
      [uuid(1), "0199c1f0-7b3e-4a5c-9d2e-1f2a3b4c5d6e"],
      [
        "",
        "1",
        uuid(1).replaceAll("-", ""),
        uuid(1).replace("7", "A"),
        `${uuid(1)}.x`,
        `{${uuid(1)}}`,
      ],
    )
  }
})

describe("an id that is a token of a subject", () => {
  for (const schema of [ProjectId, DomainId, WorkerId]) {
    cases(
      schema,
      ["default", "7a1fd1e3c0d94a4f8d1f2f0f5d1e9b77", uuid(1), "x".repeat(64)],
      ["", "a.b", "a b", "*", ">", "x".repeat(65), "a/b"],
    )
  }
})

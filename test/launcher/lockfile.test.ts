import { describe, expect, it } from "vitest"
import { missingPlatforms } from "../../launcher/lockfile.mjs"

const lockWith = (...names: ReadonlyArray<string>) => ({
  packages: {
    "node_modules/parent": {
      dev: true,
      optionalDependencies: Object.fromEntries(names.map((name) => [name, "1.2.3"])),
    },
    "node_modules/parent-linux-x64-gnu": { version: "1.2.3" },
  },
})

describe("the lockfile", () => {
  it("lacks nothing when each platform is in it", () => {
    expect(missingPlatforms(lockWith("parent-linux-x64-gnu"))).toEqual({})
  })

  it("gets the version and the platform of each package that a mirror left out", () => {
    const entry = { version: "1.2.3", dev: true, optional: true }
    const missing = lockWith("@p/darwin-arm64", "parent-linux-x64-musl", "p-linux-arm-gnueabihf")
    expect(missingPlatforms(missing)).toEqual({
      "node_modules/@p/darwin-arm64": { ...entry, cpu: ["arm64"], os: ["darwin"] },
      "node_modules/parent-linux-x64-musl": {
        ...entry,
        cpu: ["x64"],
        os: ["linux"],
        libc: ["musl"],
      },
      "node_modules/p-linux-arm-gnueabihf": {
        ...entry,
        cpu: ["arm"],
        os: ["linux"],
        libc: ["glibc"],
      },
    })
  })

  it("rejects a package whose name does not contain its platform", () => {
    expect(() => missingPlatforms(lockWith("fsevents"))).toThrow("fsevents")
  })
})

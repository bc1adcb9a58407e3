import { availableParallelism } from "node:os"

import { defineConfig } from "vitest/config"
// Each test file has a process of its own, which would compile the same libraries again.
import "./launcher/compile-cache.mjs"

// Real servers start in tests: a long timeout separates a hanging test from a slow machine.
const timeouts = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 20_000 } },
}

const named = (kind: string) => ["test", "packages/*/test"].map((at) => `${at}/**/*.${kind}.ts`)

export default defineConfig({
  test: {
    // One more than cores: a quarter of a test's time is waiting for servers of its own.
    maxWorkers: availableParallelism() + 1,
    projects: [
      { test: { name: "test", include: named("test"), ...timeouts } },
      { test: { name: "services", include: named("services"), ...timeouts } },
    ],
  },
})

import { availableParallelism } from "node:os"

import { defineConfig } from "vitest/config"

// Real servers start in tests: what hangs is told apart from what is slow on a busy machine.
const timeouts = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 20_000 } },
}

export default defineConfig({
  test: {
    // By itself it leaves one core idle: on two cores that is half of the machine.
    maxWorkers: availableParallelism(),
    projects: [
      { test: { name: "test", include: ["test/**/*.test.ts"], ...timeouts } },
      { test: { name: "services", include: ["test/**/*.services.ts"], ...timeouts } },
    ],
  },
})

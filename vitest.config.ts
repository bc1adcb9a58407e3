import { defineConfig } from "vitest/config"

// Real servers start in tests: what hangs is told apart from what is slow on a busy machine.
const timeouts = { testTimeout: 60_000, hookTimeout: 60_000 }

export default defineConfig({
  test: {
    projects: [
      { test: { name: "test", include: ["test/**/*.test.ts"], ...timeouts } },
      { test: { name: "services", include: ["test/**/*.services.ts"], ...timeouts } },
    ],
  },
})

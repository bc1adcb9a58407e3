import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    projects: [
      { test: { name: "test", include: ["test/**/*.test.ts"], testTimeout: 30_000, hookTimeout: 60_000 } },
      { test: { name: "services", include: ["test/**/*.services.ts"], testTimeout: 120_000 } },
    ],
  },
})

/** The FMCSA adapter with the tests' own registry. */
import { Redacted } from "effect"
import type { RegistryFmcsaOptions } from "#adapters/carrier-search/registry-fmcsa.ts"
import { fake_key } from "./registry-fake.ts"

/** The default options, except for the rate. */
export const optionsAt = (
  url: string,
  more: Partial<RegistryFmcsaOptions> = {},
): RegistryFmcsaOptions => ({
  url,
  web_key: Redacted.make(fake_key),
  version: "1.2.3",
  concurrency: 8,
  rate_per_second: 0,
  timeout_seconds: 10,
  tries: 4,
  retry_percent: 10,
  cache_seconds: 0,
  ...more,
})

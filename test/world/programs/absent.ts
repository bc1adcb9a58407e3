/** Placeholders for tests whose dependencies only some machines have. */
import { describe, it } from "vitest"

/** Whether tests fail if a dependency is missing. CI sets it. */
export const is_all_required = process.env.ALMANAC_REQUIRE_ALL === "1"

/**
 * Stands for the tests `name`, which cannot run without `what`: they are skipped with one line, or
 * fail if all are required. `why` says how to get it.
 */
export const describeAbsent = (
  name: string,
  what: string,
  why: string,
  is_required = is_all_required,
) => {
  if (!is_required) {
    console.warn(`skipped: ${name}. ${why}`)
    return describe.skip(name, () => it(`needs ${what}`, () => {}))
  }
  return describe(name, () => {
    it(`has ${what} to run with`, () => {
      throw new Error(why)
    })
  })
}

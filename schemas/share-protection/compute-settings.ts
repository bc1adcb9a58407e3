/** Settings of the machines that workers run on. Source: DECISIONS, document 2, workers. */
import { choice, integer, list, setting, text } from "#schemas/setting.ts"

const from_workers = "decisions of document 2, workers"
/** An idle worker takes about 100 MB. */
const machines_max = 1000
const name = text(/^\P{Cc}{0,255}$/u, "at most 255 characters")

/** Section `[compute]`. */
export const compute = {
  kind: setting(choice("local", "nova", "none"), "local", {
    meaning:
      "Where workers run: as processes of this machine, on machines of Nova, or only where " +
      "`almanac agent` was started by hand.",
    source: from_workers,
  }),
  images_dir: setting(text(), "", {
    meaning:
      "Folder of the local images, a manifest each; empty: `images` in the data folder, where " +
      "the first start makes `almanac-agent`.",
    source: from_workers,
  }),
  max_machines: setting(integer(1, machines_max, "machines"), 8, {
    meaning: "Most local workers at a time.",
    source: from_workers,
  }),
  flavor: setting(name, "", {
    meaning: "Id of the flavor of Nova's machines.",
    source: from_workers,
  }),
  networks: setting(list(text(/^[\w-]{1,64}$/, "network ids")), [], {
    meaning: "Ids of the networks that Nova's machines are in.",
    source: from_workers,
  }),
  security_groups: setting(list(name), [], {
    meaning: "Names of the security groups of Nova's machines; none: the project's default.",
    source: from_workers,
  }),
  key_name: setting(name, "", {
    meaning: "Name of the key pair that may log in to Nova's machines; empty: none.",
    source: from_workers,
  }),
}

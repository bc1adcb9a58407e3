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
      "Location of workers: processes on this machine, Nova machines, or only machines where " +
      "`almanac agent` is started by hand.",
    source: from_workers,
  }),
  images_dir: setting(text(), "", {
    meaning:
      "Folder of the local images, one manifest each; empty: `images` in the data folder, where " +
      "the first start creates `almanac-agent`.",
    source: from_workers,
  }),
  max_machines: setting(integer(1, machines_max, "machines"), 8, {
    meaning: "Maximum number of local workers.",
    source: from_workers,
  }),
  flavor: setting(name, "", {
    meaning: "ID of the Nova flavor of worker machines.",
    source: from_workers,
  }),
  networks: setting(list(text(/^[\w-]{1,64}$/, "network ids")), [], {
    meaning: "IDs of the networks of Nova worker machines.",
    source: from_workers,
  }),
  security_groups: setting(list(name), [], {
    meaning: "Names of the security groups of Nova worker machines; empty: the project's default.",
    source: from_workers,
  }),
  key_name: setting(name, "", {
    meaning: "Name of the key pair for SSH login to Nova worker machines; empty: none.",
    source: from_workers,
  }),
}

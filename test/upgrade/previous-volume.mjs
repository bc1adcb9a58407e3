/**
 * Running in the folder of the previous release, opens the volume in the given folder, puts one
 * blob into it and closes it; prints what it found as a line of JSON.
 */
import { openVolume } from "#adapters/volume-engine.ts"

const [, , dir, text] = process.argv
const options = {
  dir,
  capacity_bytes: 2 ** 40,
  size_max_bytes: 2 ** 40,
  segment_bytes: 128 * 1024,
  scrub_bytes_per_second: 0,
  background: false,
}
const order = {
  labels: {},
  policy: "REPLICATION_POLICY_UNSPECIFIED",
  if_none_match: false,
  origin: { actor: "old", request_id: "r", correlation_id: "c" },
}

/** The blobs that are read back intact, out of all in the volume. */
const readAll = async (engine) => {
  const { copies } = await engine.copies("", "", 1000)
  let whole = 0
  for (const { id } of copies) {
    const read = await engine.read(id, {}, 1n).catch(() => undefined)
    if (read !== undefined) whole += 1
  }
  return whole
}

try {
  const engine = await openVolume(options)
  const whole = await readAll(engine)
  await engine.put(order, [Buffer.from(text)], BigInt(Date.now()) * 1_000_000n)
  await engine.shut()
  console.log(JSON.stringify({ whole }))
} catch (cause) {
  console.log(JSON.stringify({ refused: String(cause?.detail ?? cause) }))
}

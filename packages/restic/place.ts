/** A repository in a bucket, as restic takes it: secrets by the environment alone. */
import { Redacted } from "effect"
import type { Repository } from "#actors/share-protection/ports/engine.ts"
import { authorities_option, type ResticPlace } from "./process.ts"

const lookups = { path: "path", virtual: "dns" } as const

/** Where restic finds the repository. Its name is in the environment too: argv is everybody's. */
export const placeOf = (repository: Repository): ResticPlace => {
  const { endpoint, bucket, region, addressing_mode, ca_cert } = repository
  const access_key = Redacted.value(repository.access_key)
  const secret_key = Redacted.value(repository.secret_key)
  const password = Redacted.value(repository.password)
  return {
    environment: {
      RESTIC_REPOSITORY: `s3:${endpoint.replace(/\/+$/, "")}/${bucket}`,
      RESTIC_PASSWORD: password,
      AWS_ACCESS_KEY_ID: access_key,
      AWS_SECRET_ACCESS_KEY: secret_key,
      ...(region === null ? {} : { AWS_DEFAULT_REGION: region }),
    },
    options: [
      `--option=s3.bucket-lookup=${lookups[addressing_mode]}`,
      ...(ca_cert === null ? [] : [authorities_option]),
    ],
    ca_cert,
    secrets: [secret_key, access_key, password],
  }
}

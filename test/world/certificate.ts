/** Certificates for tests of TLS, made by openssl. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"

export interface CertificateOptions {
  /** Where to write `<name>.key` and `<name>.pem`. */
  readonly folder: string
  /** The common name, and the name of both files. Default: "localhost". */
  readonly name?: string
  /** The name of the authority that signs it, in the same folder. Default: self-signed. */
  readonly by?: string
  /** Alternative names, as "DNS:localhost,IP:127.0.0.1". Default: none. */
  readonly for?: string
  /** Default: 2. */
  readonly days?: number
  /** Default: an elliptic curve. */
  readonly key_options?: ReadonlyArray<string>
}

export interface CertificateFiles {
  readonly key: string
  readonly cert: string
}

const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]

/** Makes a private key and its certificate, and returns the paths of the two files. */
export const certificate = (options: CertificateOptions): CertificateFiles => {
  const { folder, name = "localhost", by, days = 2, key_options = curve } = options
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
  const args = [
    "req",
    "-x509",
    ...key_options,
    "-nodes",
    "-days",
    `${days}`,
    "-keyout",
    key,
    "-out",
    cert,
  ]
  const names = options.for === undefined ? [] : ["-addext", `subjectAltName=${options.for}`]
  const signer =
    by === undefined
      ? []
      : [
          ...["-CA", join(folder, `${by}.pem`), "-CAkey", join(folder, `${by}.key`)],
          ...["-addext", "basicConstraints=critical,CA:FALSE"],
        ]
  execFileSync("openssl", [...args, "-subj", `/CN=${name}`, ...names, ...signer], { stdio: "pipe" })
  return { key, cert }
}

/** Like `certificate`, but returns the texts of the two files. */
export const certificateText = (options: CertificateOptions): CertificateFiles => {
  const { key, cert } = certificate(options)
  return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") }
}

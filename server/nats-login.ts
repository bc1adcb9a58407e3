/** The login of this process at an external NATS server. */
import { Redacted } from "effect"
import type { NatsLogin, NatsTls } from "#bus"
import type { Settings } from "#schemas/settings.ts"

/** An empty setting means "not configured". */
const orUndefined = (text: string) => (text === "" ? undefined : text)

export const natsLogin = ({
  nats,
}: Settings): { readonly login: NatsLogin; readonly tls: NatsTls } => {
  const { user, password, creds_file, tls_ca, tls_cert, tls_key } = nats
  return {
    login: {
      user: orUndefined(user),
      password: Redacted.value(password) === "" ? undefined : password,
      creds_file: orUndefined(creds_file),
    },
    tls: {
      ca_file: orUndefined(tls_ca),
      cert_file: orUndefined(tls_cert),
      key_file: orUndefined(tls_key),
    },
  }
}

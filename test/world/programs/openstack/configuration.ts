/** The configuration of real OpenStack services for tests, each in its own folder. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"

/** The location of the services. */
export interface Place {
  /** State, databases and logs, in `<folder>/keystone` and so on. */
  readonly folder: string
  /** The unpacked packages; `/` if they are installed. */
  readonly tree: string
  readonly ports: Readonly<Record<Service, number>>
}

export const services = ["keystone", "barbican", "manila"] as const
export type Service = (typeof services)[number]

/** The folder of this file: paste files and the programs in Python. */
export const programs = resolve(import.meta.dirname)

/** The password of the service users in the project `service`. */
export const service_password = "service-pw"
export const admin_password = "admin-pw"

export const baseOf = ({ ports }: Place, service: Service) => `http://127.0.0.1:${ports[service]}`

/** Writes every configuration file: ports and folders change with each run. */
export const configure = (place: Place) => {
  const { folder, ports } = place
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write("keystone/keystone.conf", keystone(folder))
  const wsgi = join(place.tree, "usr/bin/keystone-wsgi-public")
  const variable = `OS_KEYSTONE_CONFIG_FILES=${folder}/keystone/keystone.conf`
  write("keystone/uwsgi.ini", uwsgi(place, ports.keystone, wsgi, variable))
  // Barbican reads its configuration only from its home.
  write("barbican/.barbican/barbican.conf", barbican(place))
  const home = `HOME=${folder}/barbican`
  const barbican_wsgi = join(programs, "barbican_wsgi.py")
  write("barbican/uwsgi.ini", uwsgi(place, ports.barbican, barbican_wsgi, home))
  write("manila/manila.conf", manila(place))
}

const keystone = (folder: string) => `[DEFAULT]
use_stderr = true
[database]
connection = sqlite:///${folder}/keystone/keystone.db
[token]
provider = fernet
# Both would let a token of an expired trust be found valid.
caching = false
cache_on_issue = false
[fernet_tokens]
key_repository = ${folder}/keystone/fernet
[fernet_receipts]
key_repository = ${folder}/keystone/fernet
[credential]
key_repository = ${folder}/keystone/fernet
[cache]
enabled = true
backend = oslo_cache.dict
[identity]
password_hash_rounds = 4
[oslo_policy]
policy_file = ${folder}/keystone/policy.yaml
[oslo_messaging_notifications]
driver = noop
`

const plugins = (tree: string) => join(tree, "usr/lib/uwsgi/plugins")

/** For example, python311: only an installation creates the link without a version. */
const pythonPlugin = (tree: string) =>
  readdirSync(plugins(tree))
    .find((name) => /^python3\d+_plugin/.test(name))
    ?.replace(/_plugin.*/, "")

/**
 * One process with one thread because of SQLite; it never keeps a connection alive, so it must
 * announce that.
 */
const uwsgi = ({ tree }: Place, port: number, wsgi: string, variable: string) => `[uwsgi]
plugins-dir = ${plugins(tree)}
plugins = ${pythonPlugin(tree)}
http-socket = 127.0.0.1:${port}
wsgi-file = ${wsgi}
env = ${variable}
master = true
processes = 1
threads = 1
enable-threads = true
lazy-apps = true
die-on-term = true
no-orphans = true
buffer-size = 65535
disable-logging = true
add-header = Connection: close
`

/** Token validation with Keystone; without a cache, so that revocation takes effect at once. */
const authtoken = (place: Place, username: string) => `[keystone_authtoken]
www_authenticate_uri = ${baseOf(place, "keystone")}
auth_url = ${baseOf(place, "keystone")}
auth_type = password
username = ${username}
password = ${service_password}
project_name = service
user_domain_id = default
project_domain_id = default
service_token_roles = service
service_token_roles_required = true
token_cache_time = -1
`

const barbican = (place: Place) => `[DEFAULT]
use_stderr = true
sql_connection = sqlite:///${place.folder}/barbican/barbican.db
db_auto_create = true
host_href = ${baseOf(place, "barbican")}
transport_url = fake:/
[queue]
enable = false
[secretstore]
namespace = barbican.secretstore.plugin
enabled_secretstore_plugins = store_crypto
[crypto]
namespace = barbican.crypto.plugin
enabled_crypto_plugins = simple_crypto
[simple_crypto_plugin]
kek = ${readFileSync(join(place.folder, "barbican/kek"), "utf8")}
${authtoken(place, "barbican")}`

const manila = (place: Place) => `[DEFAULT]
use_stderr = true
state_path = ${place.folder}/manila/state
lock_path = ${place.folder}/manila/locks
transport_url = fake:/
api_paste_config = ${join(programs, "manila-paste.ini")}
auth_strategy = keystone
osapi_share_listen = 127.0.0.1
osapi_share_listen_port = ${place.ports.manila}
osapi_share_workers = 1
enabled_share_protocols = NFS,CIFS
enabled_share_backends = alpha
default_share_type = default
host = local
periodic_interval = 5
report_interval = 5
periodic_fuzzy_delay = 1
default_log_levels = oslo_messaging.rpc.client=ERROR
[alpha]
share_driver = folder_driver.FolderDriver
driver_handles_share_servers = False
share_backend_name = ALPHA
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays = ensure_share:0
[database]
connection = sqlite:///${place.folder}/manila/manila.db
[oslo_concurrency]
lock_path = ${place.folder}/manila/locks
[coordination]
backend_url = file://${place.folder}/manila/state
[oslo_messaging_notifications]
driver = noop
${authtoken(place, "manila")}`

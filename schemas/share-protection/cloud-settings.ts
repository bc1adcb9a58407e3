/**
 * Settings of the cloud services that share protection uses. Source: document 2 §5 with its
 * decisions.
 */
import { choice, integer, secret, setting, text, url } from "#schemas/setting.ts"

const from_cloud = "decisions of document 2, identity, secrets, shares"
const hour_s = 3600
/** 64 TiB: larger than any share that is backed up. */
const share_gib_max = 65_536

/** Section `[identity]`. */
export const identity = {
  kind: setting(choice("embedded", "keystone"), "embedded", {
    meaning: "Whose tokens, trusts, secrets and shares: our own, or those of an OpenStack cloud.",
    source: from_cloud,
  }),
}

/** Section `[keystone_authtoken]`: the service user, and the validation of tokens. */
export const keystone_authtoken = {
  www_authenticate_uri: setting(url("http", "https"), "", {
    meaning: "Where tokens are had, as a 401 tells it; empty: `auth_url`, or what was asked.",
    source: "document 2 §5",
  }),
  auth_url: setting(url("http", "https"), "", {
    meaning: "Address of Keystone, with or without `/v3`.",
    source: from_cloud,
  }),
  username: setting(text(), "", {
    meaning: "The service user: trusts name it as their trustee.",
    source: from_cloud,
  }),
  password: setting(secret, "", { meaning: "The service user's password.", source: from_cloud }),
  password_file: setting(text(), "", {
    meaning: "File that holds `password`.",
    source: from_cloud,
  }),
  project_name: setting(text(), "service", {
    meaning: "The service user's project; workers are in it too.",
    source: from_cloud,
  }),
  user_domain_id: setting(text(), "default", {
    meaning: "Domain of the service user.",
    source: from_cloud,
  }),
  project_domain_id: setting(text(), "default", {
    meaning: "Domain of the service user's project.",
    source: from_cloud,
  }),
  region: setting(text(), "", {
    meaning: "Region of the catalogue whose endpoints are used; empty: the first that fits.",
    source: from_cloud,
  }),
  cafile: setting(text(), "", {
    meaning: "File of the authorities (PEM) for https in the cloud; empty: the system's.",
    source: from_cloud,
  }),
  token_cache_time: setting(integer(0, hour_s, "seconds"), 0, {
    meaning:
      "Seconds for which a token that was valid counts as valid; 0: each request asks Keystone.",
    source: "document 2 §5: validated on every request",
  }),
}

/** Section `[manila]`. */
export const manila = {
  mount: setting(choice("nfs", "local"), "nfs", {
    meaning: "How exports are reached: mounted over NFS, or as folders of this very machine.",
    source: from_cloud,
  }),
  mounts_dir: setting(text(), "", {
    meaning: "Folder in which exports are mounted; empty: `mounts` in the data folder.",
    source: from_cloud,
  }),
  access_to: setting(text(/^[\d.:a-fA-F/]{0,64}$/, "IP address or network"), "", {
    meaning: "Where workers come from, as Manila's access rules name it; empty: no rules are made.",
    source: from_cloud,
  }),
  admin_role: setting(text(/^\w[\w.-]{0,63}$/, "role name"), "admin", {
    meaning: "Role of the service user by which Manila lets it see the shares of all projects.",
    source: from_cloud,
  }),
  deadline_seconds: setting(integer(1, hour_s, "seconds"), 300, {
    meaning: "Seconds in which a share or a snapshot must be made, or be gone.",
    source: from_cloud,
  }),
  lost_share_gib: setting(integer(1, share_gib_max, "GiB"), 100, {
    meaning: "Size of the new share for a restore of a share that is gone, and its size with it.",
    source: from_cloud,
  }),
}

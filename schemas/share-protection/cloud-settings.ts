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
    meaning: "Source of tokens, trusts, secrets and shares: embedded, or an OpenStack cloud.",
    source: from_cloud,
  }),
}

/** Section `[keystone_authtoken]`: the service user, and the validation of tokens. */
export const keystone_authtoken = {
  www_authenticate_uri: setting(url("http", "https"), "", {
    meaning:
      "URL for obtaining tokens, sent with status 401; empty: `auth_url`, or the requested " +
      "address.",
    source: "document 2 §5",
  }),
  auth_url: setting(url("http", "https"), "", {
    meaning: "URL of Keystone, with or without `/v3`.",
    source: from_cloud,
  }),
  username: setting(text(), "", {
    meaning: "Name of the service user, which is the trustee of all trusts.",
    source: from_cloud,
  }),
  password: setting(secret, "", { meaning: "Password of the service user.", source: from_cloud }),
  password_file: setting(text(), "", {
    meaning: "File that contains `password`.",
    source: from_cloud,
  }),
  project_name: setting(text(), "service", {
    meaning: "Project of the service user; workers run in it too.",
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
    meaning: "Region of the endpoints in the service catalogue; empty: the first match.",
    source: from_cloud,
  }),
  cafile: setting(text(), "", {
    meaning: "File with the CA certificates (PEM) for https in the cloud; empty: the system's.",
    source: from_cloud,
  }),
  token_cache_time: setting(integer(0, hour_s, "seconds"), 0, {
    meaning:
      "Seconds for which a valid token is cached; 0: each request is validated with Keystone.",
    source: "document 2 §5: validated on every request",
  }),
}

/** Section `[manila]`. */
export const manila = {
  mount: setting(choice("nfs", "local"), "nfs", {
    meaning: "Access to exports: mounted over NFS, or as folders of this machine.",
    source: from_cloud,
  }),
  mounts_dir: setting(text(), "", {
    meaning: "Folder for the mounts of exports; empty: `mounts` in the data folder.",
    source: from_cloud,
  }),
  access_to: setting(text(/^[\d.:a-fA-F/]{0,64}$/, "IP address or network"), "", {
    meaning: "Network of the workers for Manila's access rules; empty: no rules are created.",
    source: from_cloud,
  }),
  admin_role: setting(text(/^\w[\w.-]{0,63}$/, "role name"), "admin", {
    meaning: "Role that allows the service user to see the shares of all projects in Manila.",
    source: from_cloud,
  }),
  deadline_seconds: setting(integer(1, hour_s, "seconds"), 300, {
    meaning: "Timeout in seconds for creating or deleting a share or a snapshot.",
    source: from_cloud,
  }),
  lost_share_gib: setting(integer(1, share_gib_max, "GiB"), 100, {
    meaning: "Size of the new share when a deleted share of unknown size is restored.",
    source: from_cloud,
  }),
}

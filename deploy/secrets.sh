#!/bin/sh
# Creates the secrets of a deployment in deploy/secrets once; existing ones are not changed.
set -eu
umask 077
folder="$(dirname "$0")/secrets"
mkdir -p "$folder"
cd "$folder"
fresh() {
  if [ -s "$1" ]; then return; fi
  secret="$(openssl rand -hex 32)"
  printf '%s%s' "${2:-}" "$secret" > "$1"
}
for name in cluster-secret postgres admin-token grafana; do fresh "$name"; done
# nats-server would read a word that starts with a digit as a number.
for name in nats-core nats-cluster nats-subscriber; do fresh "$name" p; done
[ -s audit-key ] || openssl genpkey -algorithm ed25519 -out audit-key
# It reads variables instead of files, so its configuration includes the same passwords. The file is
# recreated, because the existing one is read-only.
pass="$(cat nats-cluster)"
{
  printf 'NATS_CORE = "%s"\nNATS_SUBSCRIBER = "%s"\n' "$(cat nats-core)" "$(cat nats-subscriber)"
  printf 'NATS_CLUSTER = "%s"\nNATS_ROUTES = [' "$pass"
  for n in 1 2 3; do printf '"nats://cluster:%s@nats-%s:6222", ' "$pass" "$n"; done
  printf ']\n'
} > nats-passwords.new
mv -f nats-passwords.new nats-passwords.conf
# Containers read them as another user; the mode of this folder keeps other users out.
chmod 0444 ./*

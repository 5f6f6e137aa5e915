#!/bin/sh
# Makes the secrets of compose.yaml in deploy/secrets, or in the directory that is given. It changes no secret that is there.
set -eu
umask 077
directory=${1:-"$(dirname "$0")/secrets"}
mkdir -p "$directory"
cd "$directory"

random() { head -c "$1" /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# write NAME: a new file with what comes in. Containers with other user ids read it; the directory keeps out other users of this machine.
write() {
  if [ -e "$1" ]; then cat > /dev/null; else cat > "$1.new" && chmod 444 "$1.new" && mv "$1.new" "$1"; fi
}

for name in postgres-password database-password replication-password s3-secret; do random 24 | write "$name"; done
password=$(cat database-password)
secret=$(cat s3-secret)

printf '"purser" "%s"\n' "$password" | write pgbouncer-users

write s3.json << END
{
  "identities": [
    {
      "name": "purser",
      "credentials": [{ "accessKey": "purser", "secretKey": "$secret" }],
      "actions": ["Admin:purser", "Read:purser", "Write:purser", "List:purser", "Tagging:purser"]
    }
  ]
}
END

write service.env << END
DATABASE_URL=postgres://purser:$password@pgbouncer:6432/purser
DATABASE_DIRECT_URL=postgres://purser:$password@postgres-1:5432,postgres-2:5432/purser
FILES_S3_ACCESS_KEY_ID=purser
FILES_S3_SECRET_ACCESS_KEY=$secret
END

# The service refuses a key that others may read, and runs as user 1000 in the image.
if [ ! -e kek ]; then
  head -c 32 /dev/urandom > kek
  chmod 600 kek
fi
[ "$(stat -c %u kek)" = 1000 ] || chown 1000 kek || { echo 'run as root: chown 1000 kek' >&2; exit 1; }

#!/bin/sh
# Starts PostgreSQL. With FOLLOWS and without data it first copies the server of that name, and streams from it afterwards.
set -eu
config=${CONFIG:-/etc/purser}
secrets=${SECRETS:-/run/secrets}

if [ -n "${FOLLOWS:-}" ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  PGPASSWORD=$(cat "$secrets/replication-password")
  export PGPASSWORD
  until pg_isready --quiet --host "$FOLLOWS"; do sleep 1; done
  # A copy that was interrupted is begun again: PGDATA appears when it is complete.
  rm -rf "$PGDATA.new"
  pg_basebackup --dbname "host=$FOLLOWS user=replicator application_name=$NAME" --pgdata "$PGDATA.new" \
    --checkpoint fast --write-recovery-conf
  mv -T "$PGDATA.new" "$PGDATA"
  unset PGPASSWORD
fi

# Where archive.sh keeps WAL.
mkdir -p "$(dirname "$PGDATA")/archive"
exec docker-entrypoint.sh postgres -c "config_file=$config/postgresql.conf" -c "hba_file=$config/pg_hba.conf" \
  -c "archive_command=$config/archive.sh %p %f" -c "cluster_name=$NAME" "$@"

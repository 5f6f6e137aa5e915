#!/bin/sh
# The image runs it once, when it has created the first server's data: the role and the database of the service, and the role of standbys.
set -eu
export SECRETS="${SECRETS:-/run/secrets}"

# psql reads the passwords itself: the arguments of a program are readable by every process of the machine.
psql --no-psqlrc --username "$POSTGRES_USER" --dbname postgres --set ON_ERROR_STOP=1 << 'END'
\set purser `cat "$SECRETS/database-password"`
\set replicator `cat "$SECRETS/replication-password"`
create role purser login password :'purser';
-- Lets /readyz show whether a standby confirms each commit.
grant pg_monitor to purser;
-- Behind a pool of transactions it limits the statements outside of a transaction.
alter role purser set statement_timeout = '30s';
create database purser owner purser;
create role replicator login replication password :'replicator';
-- From the next start on each commit waits for the other server. Both names, so that it holds after a promotion too.
alter system set synchronous_standby_names = 'ANY 1 (postgres_1, postgres_2)';
END

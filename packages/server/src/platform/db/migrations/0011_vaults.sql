-- Vaults: what an agent works in and what a payment bought, with what they hold and everything that happened in them.

create table vaults (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  description text,
  metadata jsonb not null,
  session_id text,
  payment_id text,
  -- From this instant on the vault is gone, swept or not. Null once persisted.
  expires_at timestamptz,
  -- When to tell that it will expire. Null once told, and once persisted.
  expiring_due timestamptz,
  summary text,
  sealed_at timestamptz,
  persisted_at timestamptz,
  -- What the seal covers, its SHA-256, and the signed statement about it (compact JWS). Text, not jsonb: a signature covers it.
  manifest json,
  manifest_hash text,
  statement text,
  document_count integer not null default 0,
  file_count integer not null default 0,
  -- What documents and files hold, as storage is counted.
  bytes bigint not null default 0,
  -- Head of the chain of events, and the instant of the last of them.
  event_count integer not null default 0,
  event_hash text not null,
  event_at timestamptz not null,
  -- Which counter of the plan holds this vault.
  counted_as text not null check (counted_as in ('active', 'persisted')),
  created_at timestamptz not null,
  check ((persisted_at is null) = (expires_at is not null)),
  check ((persisted_at is null) = (counted_as = 'active')),
  check ((sealed_at is null) = (manifest is null) and (sealed_at is null) = (manifest_hash is null) and (sealed_at is null) = (statement is null))
);
create index vaults_by_tenant on vaults (organisation_id, environment, id desc);
create index vaults_lapsing on vaults (organisation_id, environment, expires_at) where expires_at is not null;
create index vaults_to_expire on vaults (expires_at) where expires_at is not null;
create index vaults_to_tell on vaults (expiring_due) where expiring_due is not null;

create table vault_documents (
  vault_id text not null references vaults (id) on delete cascade,
  id text not null,
  organisation_id text not null,
  environment text not null,
  name text not null,
  -- Canonical JSON (RFC 8785), over which size and hash are taken. Kept as text: jsonb writes a number of six characters in three hundred.
  data json not null,
  size integer not null,
  sha256 text not null,
  created_at timestamptz not null,
  primary key (vault_id, id)
);

create table vault_files (
  vault_id text not null references vaults (id) on delete cascade,
  id text not null,
  organisation_id text not null,
  environment text not null,
  name text not null,
  mime_type text not null,
  size bigint not null,
  sha256 text not null,
  -- Where the blob store has the bytes; never a caller's text.
  blob_key text not null unique,
  created_at timestamptz not null,
  primary key (vault_id, id)
);

create table vault_events (
  vault_id text not null references vaults (id) on delete cascade,
  -- From 1, without a gap, given under the vault's row lock.
  sequence integer not null,
  id text not null,
  organisation_id text not null,
  environment text not null,
  type text not null,
  payload json not null,
  created_at timestamptz not null,
  primary key (vault_id, sequence),
  unique (vault_id, id)
);

-- Blobs whose rows are gone: written in the transaction that took the rows, and forgotten once the blob store has let go of them.
create table blob_deletions (
  blob_key text primary key,
  created_at timestamptz not null
);
create index blob_deletions_oldest on blob_deletions (created_at);

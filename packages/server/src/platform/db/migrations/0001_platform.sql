-- What the floor needs: answers kept for Idempotency-Keys, the outbox of events, the audit log, background jobs.

create table idempotency_keys (
  organisation_id text not null,
  environment text not null,
  key text not null,
  fingerprint bytea not null,
  api_key_id text not null,
  -- 'running' while the first request is under way (only for operations that await something outside), then 'done'.
  state text not null check (state in ('running', 'done')),
  running_until timestamptz,
  claim text,
  resource_id text,
  status integer,
  headers jsonb,
  body bytea,
  sealed boolean not null default false,
  created_at timestamptz not null,
  primary key (organisation_id, environment, key)
);
create index idempotency_keys_created_at on idempotency_keys (created_at);

create table events (
  id text primary key,
  organisation_id text not null,
  environment text not null,
  type text not null,
  payload jsonb not null,
  created_at timestamptz not null
);
create index events_by_tenant on events (organisation_id, environment, id desc);

create table audit_heads (
  organisation_id text primary key,
  sequence bigint not null,
  hash bytea not null
);

create table audit_log (
  organisation_id text not null,
  sequence bigint not null,
  id text not null unique,
  environment text,
  action text not null,
  actor jsonb not null,
  request_id text not null,
  target text,
  details jsonb not null,
  created_at timestamptz not null,
  previous_hash bytea not null,
  hash bytea not null,
  primary key (organisation_id, sequence)
);

create table jobs (
  id text primary key,
  name text not null,
  payload jsonb not null,
  run_at timestamptz not null,
  attempt integer not null default 0,
  leased_until timestamptz,
  last_error text,
  dead_at timestamptz,
  created_at timestamptz not null
);
create index jobs_due on jobs (run_at) where dead_at is null;

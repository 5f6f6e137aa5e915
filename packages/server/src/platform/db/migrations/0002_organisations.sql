-- Organisations, the people in them, their API keys, and the counters that plans are held against.

create table accounts (
  id text primary key,
  email text not null,
  name text,
  -- Null until the person behind an invitation has signed in.
  accepted_at timestamptz,
  created_at timestamptz not null
);
create unique index accounts_email on accounts (lower(email));

create table organisations (
  id text primary key,
  name text not null,
  type text not null check (type in ('personal', 'team', 'enterprise')),
  plan text not null,
  created_at timestamptz not null
);

create table members (
  organisation_id text not null references organisations (id),
  account_id text not null references accounts (id),
  -- The order of joining, for lists.
  sequence bigint generated always as identity,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  created_at timestamptz not null,
  primary key (organisation_id, account_id)
);
create index members_by_sequence on members (organisation_id, sequence desc);
create index members_by_account on members (account_id, sequence desc);

create table api_keys (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  name text not null,
  -- SHA-256 of the key's text; the key itself is stored nowhere.
  key_hash bytea not null unique,
  last4 text not null,
  created_by text not null references accounts (id),
  created_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz
);
create index api_keys_by_organisation on api_keys (organisation_id, id desc);

create table usage_counters (
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  kind text not null,
  -- 'YYYY-MM' for what is counted per calendar month in UTC, 'all' for what is counted as it stands.
  period text not null,
  used bigint not null,
  primary key (organisation_id, environment, kind, period)
);

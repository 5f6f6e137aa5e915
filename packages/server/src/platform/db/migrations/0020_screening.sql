-- Screening: versions of the sanctions list, what each screening found, and when each wallet is due.

create table sanctions_lists (
  version bigint primary key,
  source text not null,
  -- The day that the list itself bears, and the instant until which it is known to be what the source says.
  list_date date not null,
  as_of timestamptz not null,
  sha256 bytea not null,
  -- 20 bytes an address, in order.
  addresses bytea not null,
  address_count integer not null check (address_count > 0 and address_count * 20 = octet_length(addresses)),
  created_at timestamptz not null
);

-- One row: when a refresh was last tried, by any process, and how it went.
create table sanctions_refresh (
  id boolean primary key default true check (id),
  attempted_at timestamptz not null,
  failures integer not null,
  last_error text
);

-- One row: the list that the wallets were last compared with.
create table screening_follow (
  id boolean primary key default true check (id),
  list_version bigint not null,
  list_as_of timestamptz not null
);

-- Orders screenings that run at once: one that began before another was written down cannot undo it.
create sequence screening_tickets;

create table screenings (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  -- A wallet (byw_…) or a wallet transaction (wtx_…), and the address that was looked at, in lower case.
  subject_id text not null,
  address text not null,
  result text not null check (result in ('pending', 'clear', 'flagged')),
  reason text not null,
  list_version bigint not null,
  list_as_of timestamptz not null,
  oracle text not null,
  oracle_networks text[] not null,
  screened_at timestamptz not null
);
create index screenings_by_subject on screenings (organisation_id, environment, subject_id, id desc);

alter table byo_wallets add column aml_ticket bigint not null default 0;
alter table byo_wallets add column aml_due_at timestamptz not null default '-infinity';
alter table byo_wallets add column aml_screened_at timestamptz;
create index byo_wallets_due on byo_wallets (aml_due_at) where deleted_at is null;
create index byo_wallets_by_plain_address on byo_wallets (lower(address)) where deleted_at is null;

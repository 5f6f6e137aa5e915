-- Wallets that belong to the customer: an address that is watched and paid to, never held.

create table byo_wallets (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  -- EIP-55 checksummed, so that one account has one text.
  address text not null,
  -- The chain name that the caller sent, and the network that it resolved to.
  chain text not null,
  network text not null,
  name text,
  supported_tokens text[] not null,
  metadata jsonb not null,
  aml_status text not null check (aml_status in ('pending', 'clear', 'flagged')),
  created_at timestamptz not null,
  deleted_at timestamptz
);
create unique index byo_wallets_address on byo_wallets (organisation_id, environment, network, address) where deleted_at is null;
create index byo_wallets_by_tenant on byo_wallets (organisation_id, environment, id desc) where deleted_at is null;

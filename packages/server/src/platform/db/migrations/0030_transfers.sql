-- Money that leaves managed wallets: what was asked for, and the transactions that carry it out, one after another.

create table transfers (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  -- The managed wallet or child that pays, and its address, EIP-55 checksummed.
  wallet_id text not null,
  from_address text not null,
  to_address text not null,
  -- Chain names as the caller sent them, and the networks that they meant.
  from_chain text not null,
  from_network text not null,
  to_chain text not null,
  to_network text not null,
  from_token text not null,
  to_token text not null,
  decimals smallint not null,
  raw_amount numeric(78, 0) not null check (raw_amount > 0),
  route text not null check (route in ('direct', 'partner-swap', 'partner-bridge')),
  route_reason text not null,
  -- confirmed: in a block, which may still be undone until ended_at is set; failed: for good.
  status text not null check (status in ('pending', 'confirmed', 'failed')),
  reason text,
  tx_hash text,
  raw_fee numeric(78, 0) not null default 0,
  -- What the caller was told. Who was told something else than how it ended is told the end by an event.
  answered text check (answered in ('pending', 'confirmed', 'reverted')),
  event_id text,
  created_at timestamptz not null,
  confirmed_at timestamptz,
  ended_at timestamptz
);
create index transfers_by_tenant on transfers (organisation_id, environment, id desc);
create index transfers_under_way on transfers (from_network, from_address) where ended_at is null;
create index transfers_untold on transfers (ended_at) where event_id is null and answered is null;

-- Steps run in order: the next one gets its transaction in the database transaction in which the one before is seen to be done.
create table transfer_steps (
  transfer_id text not null references transfers (id),
  position integer not null,
  -- top-up: the master sends a child the coin for its gas. send: the money moves.
  kind text not null check (kind in ('top-up', 'send')),
  sender text not null,
  to_address text not null,
  data bytea not null,
  value numeric(78, 0) not null,
  gas_limit numeric(78, 0) not null,
  transaction_id text unique references chain_transactions (id),
  primary key (transfer_id, position)
);

-- Who signs for an address, whichever tenant's it is.
create index master_wallets_by_address on master_wallets (address);
create index child_addresses_by_address on child_addresses (address);

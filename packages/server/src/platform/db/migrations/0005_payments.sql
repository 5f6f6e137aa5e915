-- Payments and their logs: one row is both, since each payment has exactly one log.

create table payments (
  id text primary key,
  log_id text not null unique,
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  wallet_id text not null,
  api_key_id text not null,
  protocol text not null check (protocol in ('x402', 'mpp')),
  protocol_version smallint,
  -- What buys once, whichever door it came through: one row per authorisation across all organisations.
  claim_key text unique,
  -- The chain name as the wallet's owner gave it, and the network that it resolved to.
  chain text not null,
  network text not null,
  token text not null,
  asset text not null,
  decimals smallint not null,
  raw_amount numeric(78, 0) not null check (raw_amount >= 0),
  payer text,
  pay_to text not null,
  -- The signed authorisation, for settlement: null for stub payments.
  settlement jsonb,
  valid_before timestamptz,
  resource text,
  route text,
  method text,
  description text,
  status text not null check (status in ('verified', 'settling', 'settled', 'settlement_failed', 'voided')),
  failure_reason text,
  settling_at timestamptz,
  settle_attempt integer not null default 0,
  chain_transaction_id text,
  -- Set when a transaction is final but did not carry this payment: the chain must be asked before anything is said.
  unresolved boolean not null default false,
  tx_hash text,
  settled_at timestamptz,
  vault_id text,
  session_id text,
  created_at timestamptz not null
);
create index payments_by_tenant on payments (organisation_id, environment, id desc);
create index payments_by_log on payments (organisation_id, environment, log_id desc);
create index payments_by_wallet on payments (organisation_id, environment, wallet_id, id desc);
create index payments_to_send on payments (network, settling_at) where status = 'settling' and chain_transaction_id is null;
create index payments_in_transaction on payments (chain_transaction_id) where chain_transaction_id is not null;
create index payments_lapsing on payments (valid_before) where status = 'verified';

create table settlement_budgets (
  organisation_id text not null,
  environment text not null,
  network text not null,
  day date not null,
  gas_reserved numeric(78, 0) not null,
  primary key (organisation_id, environment, network, day)
);

-- Withdrawals to banks: what was asked for, what was agreed on with the partner, and how far both have come.

-- transfer: a caller's own, listed and told of. withdrawal: carries the tokens of a withdrawal, which tells of itself.
alter table transfers add column purpose text not null default 'transfer' check (purpose in ('transfer', 'withdrawal'));

create table withdrawals (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  -- The managed wallet or child that pays, and its address, EIP-55 checksummed.
  wallet_id text not null,
  from_address text not null,
  chain text not null,
  network text not null,
  token text not null,
  decimals smallint not null,
  raw_amount numeric(78, 0) not null check (raw_amount > 0),
  bank_account_id text not null references bank_accounts (id),
  currency text not null,
  reference text,
  status text not null check (status in ('pending_conversion', 'conversion_complete', 'completed', 'failed')),
  reason text,
  partner text not null,
  -- The account and the payout as the partner names them, where its tokens go, and its last word.
  partner_account_id text not null,
  payout_id text,
  deposit_address text,
  partner_state text,
  -- What a failed payout's tokens do: none were taken, they are back, they will be, or they are held.
  refund text check (refund in ('none', 'expected', 'done', 'held')),
  fee_amount text,
  exchange_rate text,
  payout_amount text,
  transfer_id text unique references transfers (id),
  completed_event_id text,
  failed_event_id text,
  created_at timestamptz not null,
  completed_at timestamptz,
  failed_at timestamptz,
  -- Null: nothing is expected any more.
  next_look_at timestamptz,
  unique (partner, payout_id),
  check ((payout_id is null) = (deposit_address is null)),
  check (transfer_id is null or payout_id is not null)
);
create index withdrawals_by_tenant on withdrawals (organisation_id, environment, id desc);
create index withdrawals_due on withdrawals (next_look_at) where next_look_at is not null;

-- Bank accounts as a partner knows them, so that it is told of each once.
create table payout_accounts (
  bank_account_id text not null references bank_accounts (id),
  partner text not null,
  account_id text not null,
  primary key (bank_account_id, partner)
);

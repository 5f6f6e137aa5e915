-- What may leave a managed wallet and its children, and what left, counted per token.

create table wallet_policies (
  master_wallet_id text primary key references master_wallets (id),
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  document jsonb not null,
  updated_at timestamptz not null
);

-- One row for each movement, with a policy or without: a policy that is set later counts what left before.
create table policy_reservations (
  -- The movement: a transfer's id, a withdrawal's.
  subject_id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  master_wallet_id text not null references master_wallets (id),
  operation text not null check (operation in ('transfer', 'withdraw', 'legacyWithdraw', 'sweep')),
  token text not null,
  -- In 1e-18 of the token, whatever its digits on a chain.
  atto_amount numeric(96, 0) not null check (atto_amount >= 0),
  reserved_at timestamptz not null,
  -- Set when the movement failed and the money is where it was; it counts no more.
  released_at timestamptz
);
create index policy_reservations_counted on policy_reservations (master_wallet_id, token, reserved_at) where released_at is null;

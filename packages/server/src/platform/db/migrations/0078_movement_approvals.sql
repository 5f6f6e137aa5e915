-- Transfers, refunds and withdrawals above a policy's approvalAbove wait for a person.

create table movement_approvals (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  -- The wallet whose policy requires the approval, and that wallet or the child of it that pays.
  master_wallet_id text not null references master_wallets (id),
  wallet_id text not null,
  kind text not null check (kind in ('transfer', 'refund', 'withdrawal')),
  -- The operation that the policy evaluates.
  operation text not null,
  -- The transfer or the withdrawal, which is stored in the same transaction.
  subject_id text not null unique,
  payment_id text,
  chain text not null,
  token text not null,
  decimals smallint not null,
  raw_amount numeric(78, 0) not null check (raw_amount > 0),
  -- An address, or the id of a bank account.
  recipient text not null,
  to_chain text not null,
  to_token text not null,
  approval_above text not null,
  note text,
  -- The key that made the request, if it was one; the account is the person, or whoever created the key.
  api_key_id text references api_keys (id),
  account_id text not null references accounts (id),
  status text not null default 'waiting' check (status in ('waiting', 'granted', 'refused', 'canceled', 'expired')),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  decided_at timestamptz,
  -- The account or the API key; null for an expiry.
  decided_by text,
  reason text,
  -- When its subject began or failed because of the decision.
  applied_at timestamptz,
  -- When it is next attempted to apply the decision.
  apply_at timestamptz,
  check ((status = 'waiting') = (decided_at is null)),
  check (applied_at is null or status <> 'waiting')
);
create index movement_approvals_by_tenant on movement_approvals (organisation_id, environment, id);
create index movement_approvals_by_wallet on movement_approvals (organisation_id, environment, wallet_id, id);
create index movement_approvals_by_master on movement_approvals (organisation_id, environment, master_wallet_id, id);
create index movement_approvals_open on movement_approvals (organisation_id, environment, id) where status = 'waiting';
create index movement_approvals_open_by_master on movement_approvals (master_wallet_id) where status = 'waiting';
create index movement_approvals_to_expire on movement_approvals (expires_at) where status = 'waiting';
create index movement_approvals_to_apply on movement_approvals (apply_at) where status <> 'waiting' and applied_at is null;

alter table transfers add column approval_id text;
alter table withdrawals add column approval_id text;
-- When a withdrawal that waited for an approval was allowed to begin: the partner's time limit counts from here.
alter table withdrawals add column released_at timestamptz;

-- Payments of both protocols and through both doors.

-- A facilitator's caller may be paid to an account that is no wallet here.
alter table payments alter column wallet_id drop not null;
alter table payments
  -- `verify`: our own middleware asked. `facilitator`: an x402 server of somebody else's making did.
  add column door text not null default 'verify' check (door in ('verify', 'facilitator')),
  add column scheme text not null default 'exact',
  -- MPP: the challenge that the credential answers.
  add column challenge_id text,
  -- x402 extension payment-identifier: the payer's own name for the payment, and the digest of what it was first used for.
  add column payment_identifier text,
  add column payment_fingerprint text,
  -- When a settlement that was asked for without a verify before it was first answered with success: that answer is given once.
  add column answered_at timestamptz;
create unique index payments_by_identifier on payments (organisation_id, environment, payment_identifier) where payment_identifier is not null;

-- What x402 servers that use the facilitator declare of themselves (extension bazaar), told once they were paid.
create table discovered_resources (
  organisation_id text not null,
  environment text not null,
  resource text not null,
  type text not null,
  x402_version smallint not null,
  accepts jsonb not null,
  details jsonb not null,
  updated_at timestamptz not null,
  primary key (organisation_id, environment, resource, type)
);
create index discovered_resources_newest on discovered_resources (environment, updated_at desc);

-- Refunds of payments: transfers back to the payer.

-- What refunds that have not failed take of it, in the token's smallest unit. While it is not 0 nobody may redeem the payment.
alter table payments add column refunded_raw numeric(78, 0) not null default 0;
-- Old rows have 0, so that nobody has to read them for this.
alter table payments add constraint payments_refunded_at_most check (refunded_raw between 0 and raw_amount) not valid;

create table payment_refunds (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  payment_id text not null references payments (id),
  -- The one way money leaves: it carries the refund out, and its policy counts it.
  transfer_id text not null unique references transfers (id),
  raw_amount numeric(78, 0) not null check (raw_amount > 0),
  -- The caller's own words.
  reason text,
  -- completed and failed are for good.
  status text not null default 'pending' check (status in ('pending', 'completed', 'failed')),
  created_at timestamptz not null,
  ended_at timestamptz
);
create index payment_refunds_by_payment on payment_refunds (payment_id);
create index payment_refunds_pending on payment_refunds (id) where status = 'pending';

-- Quotes that may still be used: a transfer that names one brings at least its minimum. A quote is deleted by the transfer that uses it.

create table transfer_quotes (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  wallet_id text not null,
  to_address text not null,
  from_network text not null,
  to_network text not null,
  from_token text not null,
  to_token text not null,
  raw_amount numeric(78, 0) not null check (raw_amount > 0),
  route text not null check (route in ('direct', 'partner-swap', 'partner-bridge')),
  -- Null for a direct transfer.
  partner text,
  raw_out_min numeric(78, 0) not null check (raw_out_min > 0),
  expires_at timestamptz not null
);
create index transfer_quotes_by_expiry on transfer_quotes (expires_at);

-- What the caller says of a transfer or a withdrawal; the service only keeps and answers it.
alter table transfers add column reference text;
alter table transfers add column metadata jsonb not null default '{}';
alter table withdrawals add column metadata jsonb not null default '{}';

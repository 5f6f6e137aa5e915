-- Sessions: access that a payment bought, for several calls.

create table sessions (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  -- One session per payment.
  payment_id text not null unique references payments (id),
  vault_id text not null,
  -- What it opens: routes of this host that sell for this wallet. Null where the payment does not say, and then it opens nothing.
  host text,
  wallet_id text,
  -- Who paid, as it was recorded; a session does not prove it.
  payer text,
  -- SHA-256 of the token that is good now. Null once the session is revoked.
  token_hash bytea,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  created_at timestamptz not null
);
create index sessions_by_tenant on sessions (organisation_id, environment, id desc);

-- Payments that ended without money and have a session to revoke.
create index payments_ended_with_session on payments (session_id)
  where session_id is not null and status in ('settlement_failed', 'voided');

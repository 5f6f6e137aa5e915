-- Recurring tasks find what is to be done by indexes that hold nothing else: what is done leaves them.

-- Whether the session that a payment bought was revoked since the payment ended without money.
alter table payments add column session_revoked boolean not null default false;
update payments set session_revoked = true from sessions
  where payments.session_id = sessions.id and payments.status in ('settlement_failed', 'voided') and sessions.revoked_at is not null;
create index payments_session_to_revoke on payments (id)
  where session_id is not null and status in ('settlement_failed', 'voided') and not session_revoked;
drop index payments_ended_with_session;

-- Wallets of which nothing is known, which are due again when the list is newer.
create index byo_wallets_pending on byo_wallets (id) where deleted_at is null and aml_status = 'pending';

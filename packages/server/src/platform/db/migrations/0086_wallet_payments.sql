-- Managed wallets pay a 402: a transfer whose signature the payee sends.

alter table transfers drop constraint transfers_purpose_check;
alter table transfers add constraint transfers_purpose_check check (purpose in ('transfer', 'withdrawal', 'payment')) not valid;
alter table policy_reservations drop constraint policy_reservations_operation_check;
alter table policy_reservations add constraint policy_reservations_operation_check
  check (operation in ('transfer', 'pay', 'withdraw', 'legacyWithdraw', 'sweep', 'gas')) not valid;
alter table movement_approvals drop constraint movement_approvals_kind_check;
alter table movement_approvals add constraint movement_approvals_kind_check
  check (kind in ('transfer', 'refund', 'withdrawal', 'payment')) not valid;
-- `watched`: nobody here sends it; the chain is read until its nonce is used or it has expired.
alter table relays drop constraint relays_state_check;
alter table relays add constraint relays_state_check
  check (state in ('waiting', 'included', 'settled', 'failed', 'expired', 'withdrawn', 'watched')) not valid;

create table wallet_payments (
  transfer_id text primary key references transfers (id),
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  -- x402/v2, x402/v1 or mpp/evm-charge.
  method text not null,
  -- Names the challenge that is paid, if it has an id of its own.
  challenge_key text,
  -- The credential without its signature, as JSON text; null while the payment waits for its approval or for a fresh 402.
  draft text,
  valid_before timestamptz,
  -- 65 bytes.
  signature bytea,
  -- Until when an approved payment takes a fresh 402.
  pay_until timestamptz,
  check ((draft is null) = (valid_before is null)),
  check (draft is not null or signature is null)
);
create unique index wallet_payments_by_challenge on wallet_payments (organisation_id, environment, challenge_key) where challenge_key is not null;
create index wallet_payments_unused on wallet_payments (pay_until) where draft is null and pay_until is not null;

-- As 0160, for payments. Nothing refers to them by a key: a session and a refund are written under the lock of their payment, which no code deletes.
alter table sessions drop constraint sessions_payment_id_fkey;
alter table payment_refunds drop constraint payment_refunds_payment_id_fkey;
drop trigger claim_payment on payments;
drop trigger note_late_payment on payments;
drop trigger note_late_change on payments;
-- What was unique stands in payment_claims. These indexes stay where there are rows, for the statements of the version before.
alter table payments drop constraint payments_log_id_key;
alter table payments rename to payments_first;
alter table payments_first rename constraint payments_claim_key_key to payments_first_by_claim;
alter index payments_by_challenge rename to payments_first_by_challenge;
alter index payments_by_identifier rename to payments_first_by_identifier;
do $$
begin
  if not exists (select from payments_first) then
    alter table payments_first drop constraint payments_first_by_claim;
    drop index payments_first_by_challenge, payments_first_by_identifier;
  end if;
end $$;
alter index payments_pkey rename to payments_first_pkey;
alter index payments_by_log rename to payments_first_by_log;
alter index payments_by_route rename to payments_first_by_route;
alter index payments_by_wallet_log rename to payments_first_by_wallet_log;
alter index payments_by_key rename to payments_first_by_key;
alter index payments_by_protocol rename to payments_first_by_protocol;
alter index payments_session_to_revoke rename to payments_first_session_to_revoke;
alter index payments_to_check rename to payments_first_to_check;
alter index payments_to_check_by_organisation rename to payments_first_to_check_by_organisation;
alter index payments_open_by_payer rename to payments_first_open_by_payer;
alter index payments_open_on_tempo rename to payments_first_open_on_tempo;
create table payments (like payments_first including defaults including constraints including storage) partition by range (id);
alter table payments add constraint payments_pkey primary key (id);
create index payments_by_log on payments (organisation_id, environment, log_id desc);
create index payments_by_route on payments (organisation_id, environment, route, log_id);
create index payments_by_wallet_log on payments (organisation_id, environment, wallet_id, log_id);
create index payments_by_key on payments (organisation_id, environment, api_key_id, log_id);
create index payments_by_protocol on payments (organisation_id, environment, protocol, log_id);
create index payments_session_to_revoke on payments (id)
  where session_id is not null and status in ('settlement_failed', 'voided') and not session_revoked;
create index payments_to_check on payments (network, check_at) where check_at is not null;
create index payments_to_check_by_organisation on payments (network, organisation_id, check_at) where check_at is not null;
create index payments_open_by_payer on payments (payer, network, asset) where status in ('verified', 'settling');
create index payments_open_on_tempo on payments (network, id) where status = 'settling' and settlement ->> 'kind' = 'tempo';
alter table payments attach partition payments_first for values from (minvalue) to (maxvalue);
create trigger claim_payment before insert on payments for each row execute function claim_payment();
create trigger note_late_payment after insert on payments for each row
  when (new.created_at < clock_timestamp() - interval '1 hour') execute function note_payment_change();
create trigger note_late_change after update of created_at, status, failure_reason, raw_amount, tx_hash, settled_at on payments for each row
  when (least(old.created_at, new.created_at) < clock_timestamp() - interval '1 hour') execute function note_payment_change();

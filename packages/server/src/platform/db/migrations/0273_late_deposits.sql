-- Live deposits at managed wallets of organisations that were deleted before: the operator is alerted of them, without a search in all deposits.
create table if not exists late_deposits (
  organisation_id text not null,
  transaction_id text not null,
  primary key (organisation_id, transaction_id)
);
insert into late_deposits (organisation_id, transaction_id)
select deposit.organisation_id, deposit.id from organisations join wallet_transactions as deposit on deposit.organisation_id = organisations.id
where organisations.deleted_at is not null and deposit.environment = 'live' and deposit.direction = 'in' and deposit.status = 'confirmed'
  and deposit.wallet_id not like 'byw\_%' and deposit.created_at > organisations.deleted_at
on conflict do nothing;

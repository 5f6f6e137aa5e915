-- Transfers of dust do not use up the limit of what a scrape reads: it reads the greatest deposits. The version before leaves the column null, which counts as
-- the greatest.
alter table late_deposits add column if not exists tokens numeric;
update late_deposits set tokens = deposit.raw_amount / power(10::numeric, deposit.decimals)
from wallet_transactions as deposit where deposit.id = late_deposits.transaction_id;
create index concurrently if not exists late_deposits_by_tokens on late_deposits (tokens desc nulls first);
-- Deposits that a process of the version before 0273 confirmed beside the new one.
insert into late_deposits (organisation_id, transaction_id, tokens)
select deposit.organisation_id, deposit.id, deposit.raw_amount / power(10::numeric, deposit.decimals)
from organisations join wallet_transactions as deposit on deposit.organisation_id = organisations.id
where organisations.deleted_at is not null and deposit.environment = 'live' and deposit.direction = 'in' and deposit.status = 'confirmed'
  and deposit.wallet_id not like 'byw\_%' and deposit.created_at > organisations.deleted_at
on conflict do nothing;

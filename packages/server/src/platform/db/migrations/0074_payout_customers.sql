-- The customer that an organisation is at a payout partner: one each, so that nobody's bank account is another's customer's.

create table payout_customers (
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  partner text not null,
  customer_id text not null,
  set_at timestamptz not null,
  primary key (organisation_id, environment, partner),
  unique (partner, customer_id)
);

-- A row stands before the partner is asked to make the account, so that one whose answer was lost is found when the bank account is deleted.
-- The customer is empty where the partner has none.
alter table payout_accounts add column customer_id text not null default '';
alter table payout_accounts alter column customer_id drop default;
alter table payout_accounts drop constraint payout_accounts_pkey;
alter table payout_accounts add primary key (bank_account_id, partner, customer_id);
alter table payout_accounts alter column account_id drop not null;
alter table payout_accounts add column is_active boolean not null default true;
alter table payout_accounts add column removed_at timestamptz;
-- When the partner is asked to delete the account; null while the bank account is in use and once it is deleted there.
alter table payout_accounts add column remove_at timestamptz;
alter table payout_accounts add column remove_attempts integer not null default 0;
create index payout_accounts_to_remove on payout_accounts (remove_at) where remove_at is not null;
create index payout_accounts_by_account on payout_accounts (partner, account_id);
create index withdrawals_open_by_account on withdrawals (bank_account_id) where status in ('pending_conversion', 'conversion_complete');

-- Details stay for as long as the partner may have an account whose id was never answered.
alter table bank_accounts drop constraint bank_accounts_check;
alter table bank_accounts add constraint bank_accounts_details check (deleted_at is not null or details is not null);

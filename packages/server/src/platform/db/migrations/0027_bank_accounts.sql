-- Bank accounts that money is withdrawn to. A deleted one stays as a row, without its details, for what was paid to it names it.

create table bank_accounts (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  account_name text not null,
  currency text not null check (currency in ('EUR', 'GBP', 'USD')),
  -- Four asterisks and the last four characters.
  masked_account text not null,
  is_active boolean not null,
  -- Sort code, account number and the like, sealed for this row.
  details bytea,
  created_at timestamptz not null,
  deleted_at timestamptz,
  check ((details is null) = (deleted_at is not null))
);
create index bank_accounts_by_tenant on bank_accounts (organisation_id, environment, id desc) where deleted_at is null;

-- What an organisation uses counts for 31 days toward the account whose free quotas it had before.
create table if not exists former_quota_accounts (
  organisation_id text not null references organisations (id),
  account_id text not null references accounts (id),
  moved_at timestamptz not null default now(),
  primary key (account_id, organisation_id)
);
create index if not exists former_quota_accounts_by_organisation on former_quota_accounts (organisation_id);

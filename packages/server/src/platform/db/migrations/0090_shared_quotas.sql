-- The account whose quotas an organization on the free plan shares: its first owner's. Null: it shares with nobody.
alter table organisations add column quota_account_id text references accounts (id);
update organisations set quota_account_id = (
  select account_id from members
  where members.organisation_id = organisations.id and role = 'owner' and accepted_at is not null
  order by sequence limit 1
);
create index organisations_by_quota_account on organisations (quota_account_id);

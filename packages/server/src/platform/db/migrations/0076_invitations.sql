-- A member is invited until the person accepts. An invitation by account says nothing of whether the account exists.
alter table members drop constraint members_account_id_fkey;
alter table members add column accepted_at timestamptz;
-- The address that was invited; null for an invitation by account, and of members of before.
alter table members add column invited_email text;

update members set accepted_at = members.created_at
from accounts where accounts.id = members.account_id and accounts.accepted_at is not null;
update members set invited_email = accounts.email
from accounts where accounts.id = members.account_id and members.accepted_at is null;

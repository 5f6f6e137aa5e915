-- The account that made an organization itself; null for one that the operator made, and for earlier ones.
alter table organisations add column if not exists made_by text;
-- When a member's role was changed last; null where it is still the one of the invitation.
alter table members add column if not exists role_since timestamptz;
create index concurrently if not exists organisations_by_maker on organisations (made_by) where made_by is not null;

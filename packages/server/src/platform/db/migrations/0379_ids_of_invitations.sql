-- What an invitation by address shows in place of the account's id, whose time says since when the account exists.
alter table members add column if not exists invited_as text;
